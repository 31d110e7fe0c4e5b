"""The only model that an agent is ever handed: no call escapes the budget, the ledger or the trace."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

from rlm_loop.accounting.attribution import Attribution, Part, Resent, attribute
from rlm_loop.accounting.budget import Account, BudgetSpent, Reservation
from rlm_loop.accounting.call_tree import Caller
from rlm_loop.accounting.charges import NO_REPLY, difference
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.accounting.scope import Slots, call_scope
from rlm_loop.messages import Message, Prompt, Reply, Span, Usage, common
from rlm_loop.models.base import Kind, Model, listener, tell
from rlm_loop.tools.hooks import NO_HOOKS, Hooks
from rlm_loop.tools.threads import GivenUp, Pending
from rlm_loop.traces.trace import Trace
from rlm_loop.traces.values import Deferred

T = TypeVar("T")
_TOKENS = attrgetter("tokens")
_UNHEARD = "Cancelled: there was no reply before the run ended; what it costs is not known"


@dataclass
class _Sent:
    """Messages of one conversation that a model has read, and the parts of the last call that were counted."""

    messages: tuple[Message, ...] = ()
    counted: tuple[int, Sequence[Part]] = (0, ())
    seen: set[Message | tuple[int, Span]] = field(default_factory=set["Message | tuple[int, Span]"])

    def remember(self, messages: tuple[Message, ...], start: int = 0) -> None:
        """Add a request, of which the first messages are known."""
        self.messages = messages
        for message in messages[start:]:
            self.seen.add(message)
            for span in message.spans:
                self.seen.add((message.turn, span))

    def again(self, messages: Sequence[Message], start: int) -> list[Resent]:
        """Return what follows the shared prefix and was sent all the same, in an earlier call and at another place."""
        found = list[Resent]()
        for index, message in enumerate(messages[start:], start):
            if message in self.seen:
                found.append(index)
            else:
                fresh = {span.cause for span in message.spans if (message.turn, span) not in self.seen}
                for span in message.spans:
                    if span.cause not in fresh and (index, span.cause) not in found:
                        found.append((index, span.cause))
        return found


@dataclass
class Meter:
    """A model with its account.  `node` and `purpose` say who calls; `max_tokens` limits each reply.

    `slots` limit how many calls of the whole tree are under way at once.  `temperature` is that of each request, in
    place of the model's own; `None` leaves it to the model.
    """

    model: Model
    account: Account
    ledger: Ledger
    trace: Trace
    node: Caller = field(default_factory=Caller)
    purpose: str = "agent"
    max_tokens: int | None = None
    slots: Slots | None = None
    temperature: float | None = None
    hooks: Hooks = NO_HOOKS
    """The run's hooks; those that have `on_text` hear the reply while it is written."""
    turn: int = 0
    """The turn of the latest call."""
    _sent: _Sent = field(default_factory=_Sent, repr=False)
    _heard: list[str] = field(default_factory=list[str], init=False, repr=False)  # of the reply under way

    @property
    def sent(self) -> tuple[Message, ...]:
        """The messages of the latest request that got a reply."""
        return self._sent.messages

    @property
    def unfinished(self) -> str:
        """Text of a reply that was broken off, as far as hooks have heard it."""
        return "".join(self._heard)

    @property
    def samples(self) -> bool:
        """True where replies are drawn: a temperature above 0, or none given, so that a provider takes its own."""
        temperature = self.model.temperature if self.temperature is None else self.temperature
        return temperature is None or temperature > 0

    @property
    def where(self) -> dict[str, Any]:
        """The fields of an event that say who acts, and in which turn."""
        return {"node": self.node.path, "depth": self.node.depth, "turn": self.turn}

    def about(self) -> dict[str, Any]:
        """Return the fields of a log line."""
        return {"run": self.trace.run, "task": self.trace.task, "turn": self.turn}

    def record(self, event: str, **data: Any) -> None:
        """Append an event of this caller and turn to the trace."""
        self.trace.record(event, **self.where, **data)

    def follow(self, sent: tuple[Message, ...]) -> None:
        """Go on where another run left off, which had sent these messages last."""
        self._sent.remember(sent)

    def scoped(
        self,
        node: Caller,
        *,
        purpose: str,
        model: Model | None = None,
        max_tokens: int | None = None,
        account: Account | None = None,
    ) -> Meter:
        """Return a meter that has sent nothing, for another caller of the tree or a request beside the conversation.

        It is on the same account, or on a part of it.  The same model is asked with the same temperature, another one
        with its own.
        """
        return replace(
            self,
            model=model or self.model,
            node=node,
            purpose=purpose,
            max_tokens=self.max_tokens if max_tokens is None else max_tokens,
            account=account or self.account,
            temperature=self.temperature if model is None or model is self.model else None,
            turn=0,
            _sent=_Sent(),
        )

    def complete(self, prompt: Prompt, *, turn: int = 0) -> Reply:
        """Wait for a free slot, reserve, call, settle, charge, record; the reply is billed before anybody reads it.

        Raises `BudgetSpent` where nothing is left, `Cancelled` where nobody waits for the reply any more, and
        whatever the model raises (`ModelError`).
        """
        self.turn = turn
        # where nobody wants to see the reply grow, the model need not stream it
        if self.hooks is NO_HOOKS or not self.hooks.hears("on_text"):
            return self._completed(prompt)

        def hear(kind: Kind, text: str) -> None:
            if kind == "text":
                self._heard.append(text)
            elif kind in ("begin", "retry"):  # what was heard before does not count
                self._heard.clear()
            self.hooks.notify("on_text", kind=kind, text=text, node=self.node.path)

        token = listener.set(hear)
        try:
            tell("begin")
            reply = self._completed(prompt)
            self._heard.clear()
            return reply
        finally:
            tell("end")
            listener.reset(token)

    def _completed(self, prompt: Prompt) -> Reply:
        node, scope, asked = self.node, self.node.scope, prompt
        scope.check()
        if self.temperature is not None:
            asked = replace(prompt, sampling={"temperature": self.temperature, **prompt.sampling})
        parts = self._in_time(partial(self.model.measure, prompt))  # it may have to load the model
        estimate = self.model.estimate(prompt) if parts is None else sum(map(_TOKENS, parts))
        with nullcontext() if self.slots is None else self.slots.held(scope):
            held = self.account.reserve(estimate, self.max_tokens, price=self.model.price, scope=scope)
            who: dict[str, Any] = {**self.where, "call_id": self.trace.next_call()}

            def late(reply: Reply) -> None:  # on record too, where the trace is still open
                self.trace.record("late_reply", **who, request=prompt, usage=reply.usage, seconds=reply.seconds)

            try:
                how: dict[str, Any] = {"model": self.model.name, "max_tokens": held.max_tokens, "estimate": estimate}
                self.trace.record("request", prompt=prompt, **who, purpose=self.purpose, **how)
                call = node.depart(lambda: self._write_off(held, prompt, who, _UNHEARD))
            except BaseException:
                self.account.settle(held, Usage.NOTHING)
                raise
            try:
                reply = self._in_time(partial(self._asked, asked, held.max_tokens), late)
            except BaseException as error:
                node.arrive(call)
                told = f"{type(error).__name__}: {error}"
                if isinstance(error, Exception):
                    self.account.settle(held, None, getattr(error, "waited", 0.0))
                    self.trace.record("model_error", **who, request=prompt, error=told)
                else:  # interrupted: the provider may go on with the reply, and bill it
                    self._write_off(held, prompt, who, told)
                raise
            found = attribute(prompt, parts, reply.usage)
            node.arrive(call)
            self.account.settle(held, found.usage, reply.waited)
        self._charge(prompt, parts, found, reply, who)
        scope.check()  # charged, but too late to be of use
        return reply

    def _asked(self, prompt: Prompt, max_tokens: int | None) -> Reply:
        """Return the reply, asked for again as the model's `loop_retry` says; it includes the time of that."""
        if (policy := self.model.loop_retry) is None:
            return self.model.complete(prompt, max_tokens=max_tokens)
        reply, lost = policy.call(lambda: self.model.complete(prompt, max_tokens=max_tokens))
        return replace(reply, seconds=reply.seconds + lost, waited=reply.waited + lost) if lost else reply

    def _in_time(self, work: Callable[[], T], late: Callable[[T], None] | None = None) -> T:
        """Return the model's result, waited for until the time is up; then `BudgetSpent` is raised.

        The model is called in this thread where it takes no time, where Ctrl-C alone could end the wait, and for a
        sub-call, which is waited for by the agent that asked for it.
        """
        model, account = self.model, self.account
        if self.node.depth:
            token = call_scope.set(self.node.scope)
            try:
                return work()
            finally:
                call_scope.reset(token)
        main = threading.current_thread() is threading.main_thread()
        if model.immediate or (main and model.interruptible and account.seconds_left() is None):
            return work()
        try:
            return Pending(work, "model", self.node.scope, late).result(account.seconds_left)
        except GivenUp:
            raise BudgetSpent(*(account.exceeded() or ("seconds", "the time is up"))) from None

    def _charge(
        self, prompt: Prompt, parts: Sequence[Part] | None, found: Attribution, reply: Reply, who: dict[str, Any]
    ) -> None:
        memory = self._sent
        sent = common(memory.messages, prompt.messages)
        again = memory.again(prompt.messages, sent) if memory.seen else []
        call = self.ledger.charge(
            found.parts,
            found.usage,
            **self.where,
            purpose=self.purpose,
            sent=sent,
            again=tuple(again),
            exact=found.exact,
            seconds=reply.seconds,
            waited=reply.waited,
            counted=found.counted,
            usage_warning=found.usage_warning,
            tools=prompt.tools,
        )
        after, before = memory.counted
        charged = {"call": call.call, "purpose": self.purpose, "exact": call.exact, "sent": sent, "after": after}
        charged |= {"parts": Deferred(difference, before, parts) if parts else None}
        charged |= {"again": again} if again else {}  # where compaction moved messages forward
        memory.remember(prompt.messages, sent)
        if parts:
            memory.counted = call.call, parts
        self.trace.record("reply", **who, request=prompt, reply=reply, charged=charged)

    def _write_off(self, held: Reservation, prompt: Prompt, who: dict[str, Any], error: str) -> None:
        """Charge a call that ended without its reply as one call of unknown tokens."""
        unknown = Usage(None, None)
        self.account.settle(held, unknown)
        call = self.ledger.charge((), unknown, **self.where, purpose=self.purpose, exact=False, usage_warning=NO_REPLY)
        heard: dict[str, Any] = {"text": self.unfinished} if self._heard else {}
        charged = {"call": call.call, "purpose": self.purpose}
        self.trace.record("model_error", **who, request=prompt, error=error, **charged, **heard)
