"""The only model that an agent is ever handed: no call escapes the budget, the ledger or the trace."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, TypeVar

from rlm_loop.accounting.attribution import Attribution, Part, Resent, attribute
from rlm_loop.accounting.budget import Account, BudgetSpent, PricePerToken, Reservation
from rlm_loop.accounting.call_tree import Caller
from rlm_loop.accounting.charges import NO_REPLY, difference
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.accounting.scope import call_scope
from rlm_loop.accounting.slots import Slots
from rlm_loop.messages import Message, Prompt, Reply, Span, Usage, common
from rlm_loop.models.base import Model
from rlm_loop.models.listening import Kind, listener, tell
from rlm_loop.tools.hooks import NO_HOOKS, Hooks
from rlm_loop.tools.threads import GivenUp, Pending
from rlm_loop.traces.trace import Trace
from rlm_loop.traces.values import Deferred

T = TypeVar("T")
_TOKENS, _CAUSE = attrgetter("tokens"), attrgetter("cause")
_UNHEARD = "Cancelled: there was no reply before the run ended; what it costs is not known"


@dataclass
class Meter:
    """A model with its account.  `node` and `purpose` say who calls; `max_tokens` limits each reply.

    `slots` limit how many calls of the whole tree are under way at once, `price` is the model's own where it is known.
    `temperature` is that of each request, in place of the model's own; `None` leaves it to the model.
    """

    model: Model
    account: Account
    ledger: Ledger
    trace: Trace
    node: Caller = field(default_factory=Caller)
    purpose: str = "agent"
    max_tokens: int | None = None
    slots: Slots | None = None
    price: PricePerToken | None = None
    temperature: float | None = None
    hooks: Hooks = NO_HOOKS
    """Those that have `on_text` hear the reply while it is written."""
    turn: int = 0
    """The turn of the latest call."""
    unfinished: str = field(default="", init=False)
    """Text of a reply that was broken off, as far as hooks have heard it."""
    _sent: tuple[Message, ...] = field(default=(), repr=False)
    _counted: tuple[int, Sequence[Part]] = field(default=(0, ()), repr=False)  # the last call whose parts are kept
    _seen: set[Message | tuple[int, Span]] = field(
        default_factory=set["Message | tuple[int, Span]"], init=False, repr=False
    )
    """Messages and texts that were sent; a copy by `replace` is another caller and begins with none."""

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def sent(self) -> tuple[Message, ...]:
        """The messages of the latest request that got a reply."""
        return self._sent

    @property
    def samples(self) -> bool:
        """Whether replies are drawn: a temperature above 0, or none given, so that a provider takes its own."""
        temperature = self.model.temperature if self.temperature is None else self.temperature
        return temperature is None or temperature > 0

    def follow(self, sent: tuple[Message, ...]) -> None:
        """This caller goes on where another run left off, which had sent these messages last."""
        self._sent = sent
        self._remember(sent)

    def scoped(
        self,
        node: Caller,
        *,
        purpose: str,
        model: Model | None = None,
        price: PricePerToken | None = None,
        max_tokens: int | None = None,
        account: Account | None = None,
        temperature: float | None = None,
    ) -> Meter:
        """For another caller of the tree: on the same account, or on a part of it.

        The same model is asked with the same temperature, another one with its own or the one given.
        """
        return replace(
            self,
            model=model or self.model,
            price=self.price if model is None else price,
            node=node,
            purpose=purpose,
            max_tokens=self.max_tokens if max_tokens is None else max_tokens,
            account=account or self.account,
            temperature=self.temperature if model is None or model is self.model else temperature,
            turn=0,
            _sent=(),
            _counted=(0, ()),
        )

    def apart(self, purpose: str, max_tokens: int) -> Meter:
        """For a request of this caller outside of its conversation: nothing of the prompt was sent before."""
        return replace(self, purpose=purpose, max_tokens=max_tokens, _sent=(), _counted=(0, ()))

    def complete(self, prompt: Prompt, *, turn: int = 0) -> Reply:
        """Wait for a free slot, reserve, call, settle, charge, record; the reply is billed before anybody reads it.

        Raises `BudgetSpent` where nothing is left, `Cancelled` where nobody waits for the reply any more, and
        whatever the model raises (`ModelError`).
        """
        self.turn = turn
        # where nobody wants to see the reply grow, the model need not stream it
        if self.hooks is NO_HOOKS or not self.hooks.hears("on_text"):
            return self._completed(prompt, turn, [])
        streamed: list[str] = []

        def hear(kind: Kind, text: str) -> None:
            if kind == "text":
                streamed.append(text)
            elif kind in ("begin", "retry"):  # what was heard before does not count
                streamed.clear()
            self.hooks.notify("on_text", kind=kind, text=text, node=self.node.path)

        token = listener.set(hear)
        try:
            tell("begin")
            return self._completed(prompt, turn, streamed)
        except BaseException:
            self.unfinished = "".join(streamed)
            raise
        finally:
            tell("end")
            listener.reset(token)

    def _completed(self, prompt: Prompt, turn: int, streamed: Sequence[str]) -> Reply:
        node = self.node
        scope, who = node.scope, {"node": node.path, "depth": node.depth, "turn": turn}
        scope.check()
        direct, asked = self._direct(), prompt
        if self.temperature is not None:
            asked = replace(prompt, sampling={"temperature": self.temperature, **prompt.sampling})
        # measuring may have to load the model
        parts = self.model.measure(prompt) if direct else self._in_time(lambda: self.model.measure(prompt))
        estimate = self.model.estimate(prompt) if parts is None else sum(map(_TOKENS, parts))
        with nullcontext() if self.slots is None else self.slots.held(scope):
            held = self.account.reserve(estimate, self.max_tokens, price=self.price, scope=scope)
            number = self.trace.next_call()
            try:
                how = {"model": self.model.name, "max_tokens": held.max_tokens, "estimate": estimate}
                self.trace.record("request", prompt=prompt, call_id=number, **who, purpose=self.purpose, **how)
                call = self.node.depart(lambda: self._write_off(held, prompt, who, number, streamed))
            except BaseException:
                self.account.settle(held, Usage.NOTHING)
                raise
            try:
                if direct:
                    reply = self._asked(asked, held.max_tokens)
                else:
                    reply = self._in_time(
                        lambda: self._asked(asked, held.max_tokens),
                        late=lambda reply: self._record_late(prompt, who, number, reply),
                    )
            except Exception as error:
                self.node.arrive(call)
                self.account.settle(held, None, getattr(error, "waited", 0.0))
                self._record_error(prompt, who, f"{type(error).__name__}: {error}", call_id=number)
                raise
            except BaseException as error:  # interrupted: the provider may go on with the reply, and bill it
                self.node.arrive(call)
                why = f"{type(error).__name__}: {error}"
                self._write_off(held, prompt, who, number, streamed, why)
                raise
            found = attribute(prompt, parts, reply.usage)
            self.node.arrive(call, found.usage)
            self.account.settle(held, found.usage, reply.waited)
        self._charge(prompt, parts, found, reply, number, who)
        scope.check()  # charged, but too late to be of use
        return reply

    def _asked(self, prompt: Prompt, max_tokens: int | None) -> Reply:
        """The reply, asked for again as the model's `loop_retry` says; what that took is in `seconds` and `waited`.

        Raises `TypeError` where a class of the user's returned anything else.
        """
        model, lost = self.model, 0.0
        if (policy := model.loop_retry) is None:
            reply = model.complete(prompt, max_tokens=max_tokens)
        else:
            reply, lost = policy.call(lambda: model.complete(prompt, max_tokens=max_tokens))
        given: object = reply
        if not isinstance(given, Reply) or not isinstance(given.usage, Usage | None):
            raise TypeError(f"complete() of {model.name} returned {given!r:.60}: return a Reply with a Usage or None")
        usage = None if reply.usage is None else reply.usage.plain()
        if lost or usage is not reply.usage or type(reply.tool_calls) is not tuple:
            calls, seconds, waited = tuple(reply.tool_calls), reply.seconds + lost, reply.waited + lost
            return replace(reply, usage=usage, tool_calls=calls, seconds=seconds, waited=waited)
        return reply

    def _direct(self) -> bool:
        """True where the model is called in this thread: it takes no time, or Ctrl-C alone could end the wait."""
        if self.node.depth or self.model.immediate:
            return not self.node.depth
        main = threading.current_thread() is threading.main_thread()
        return main and self.model.interruptible and self.account.seconds_left() is None

    def _in_time(self, work: Callable[[], T], late: Callable[[T], None] | None = None) -> T:
        """Return the model's result, waited for until the time is up; then `BudgetSpent` is raised.

        Sub-calls are waited for by the agent that asked for them.
        """
        account = self.account
        if self.node.depth:
            token = call_scope.set(self.node.scope)
            try:
                return work()
            finally:
                call_scope.reset(token)
        try:
            return Pending(work, "model", self.node.scope, late).result(account.seconds_left)
        except GivenUp:
            raise BudgetSpent(*(account.exceeded() or ("seconds", "the time is up"))) from None

    def _charge(
        self,
        prompt: Prompt,
        parts: Sequence[Part] | None,
        found: Attribution,
        reply: Reply,
        number: int,
        who: dict[str, Any],
    ) -> None:
        sent = common(self._sent, prompt.messages)
        again = list(self._sent_before(prompt.messages, sent)) if self._seen else []
        call = self.ledger.charge(
            found.parts,
            found.usage,
            **who,
            purpose=self.purpose,
            sent_messages=sent,
            again=again,
            exact=found.exact,
            seconds=reply.seconds,
            waited=reply.waited,
            counted=found.counted,
            usage_warning=found.usage_warning,
            tools=prompt.tools,
        )
        after, before = self._counted
        charged = {
            "call": call.call,
            "purpose": self.purpose,
            "exact": call.exact,
            "sent": sent,
            "after": after,
            "parts": Deferred(difference, before, parts) if parts else None,
            **({"again": again} if again else {}),  # where compaction moved messages forward
        }
        self._sent = prompt.messages
        self._remember(prompt.messages[sent:])
        if parts:
            self._counted = call.call, parts
        self.trace.record("reply", call_id=number, **who, request=prompt, reply=reply, charged=charged)

    def _remember(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self._seen.add(message)
            for span in message.spans:
                self._seen.add((message.turn, span))

    def _sent_before(self, messages: Sequence[Message], sent: int) -> Iterator[Resent]:
        """What follows the shared prefix and was sent all the same, in an earlier call and at another place."""
        for index, message in enumerate(messages[sent:], sent):
            if message in self._seen:
                yield index
                continue
            fresh = set[str]()
            for span in message.spans:
                if (message.turn, span) not in self._seen:
                    fresh.add(span.cause)
            for cause in dict.fromkeys(map(_CAUSE, message.spans)):
                if cause not in fresh:
                    yield index, cause

    def _write_off(
        self,
        held: Reservation,
        prompt: Prompt,
        who: dict[str, Any],
        number: int,
        streamed: Sequence[str],
        error: str = _UNHEARD,
    ) -> None:
        """Charge a call that ended without its reply as one call of unknown tokens."""
        unknown = Usage(None, None)
        self.account.settle(held, unknown)
        self.node.spend(unknown)
        call = self.ledger.charge((), unknown, **who, purpose=self.purpose, exact=False, usage_warning=NO_REPLY)
        text = {"text": "".join(streamed)} if streamed else {}
        self._record_error(prompt, who, error, call_id=number, call=call.call, purpose=self.purpose, **text)

    def _record_late(self, prompt: Prompt, who: dict[str, Any], number: int, reply: Reply) -> None:
        """A reply came when the run had ended: what it cost is on record, where the trace is still open."""
        told = {"call_id": number, "usage": reply.usage, "seconds": reply.seconds}
        self.trace.record("late_reply", **who, request=prompt, **told)

    def _record_error(self, prompt: Prompt, who: dict[str, Any], error: str, **more: Any) -> None:
        self.trace.record("model_error", **who, request=prompt, error=error, **more)
