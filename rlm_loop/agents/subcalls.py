"""Sub-calls: `llm_query` is a tool whose body is a model call, or the loop again; the loop knows nothing of it.

The root is depth 0.  A query made at depth d runs at depth d + 1: as an agent with a REPL of its own while
d + 1 < max_depth, and as one plain completion where d + 1 == max_depth.
"""

from __future__ import annotations

import contextvars
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, cast

from rlm_loop.accounting.budget import Account, Budget, BudgetSpent, UnknownPrice
from rlm_loop.accounting.call_tree import Caller
from rlm_loop.accounting.scope import Cancelled, Scope, Slots, cell_scope
from rlm_loop.actions import FailureKind
from rlm_loop.agents.config import sha256
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.rules import SubCalls
from rlm_loop.dialects.reader import without_reasoning
from rlm_loop.messages import Prompt
from rlm_loop.models import get_model
from rlm_loop.models.base import Model, ModelError
from rlm_loop.outcome import Outcome, Stop
from rlm_loop.repl.contexts.context import inline_context
from rlm_loop.repl.worker import SubAnswer, SubFailure
from rlm_loop.tools.function import Tool, ToolError

SubAgent = Callable[[str, Any, Meter], Outcome]
"""Runs the loop one level down: the question, its context, and the model to run on."""

_SLICE = 0.25  # seconds: never wait longer without a look at the clock, which is an argument
HELP = "Ask a fresh model, which sees only the prompt and the context."
HELP_BATCHED = "Ask for each prompt at the same time; results in order, each a str or a failure, with .ok and .error."


class SubCallError(ToolError):
    """A sub-call gave no answer.  `reason` is one line that says why; `stop` is why a sub-agent ended.

    It is raised where the sub-call was asked for; an error is never returned as if it were an answer.
    """

    stop: str | None = None

    def __init__(self, reason: str, kind: FailureKind = "runtime") -> None:
        super().__init__(kind, f"{type(self).__name__}: {reason}")
        self.reason = reason

    def __str__(self) -> str:
        return self.reason

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.reason, self.kind))


class DepthExceeded(SubCallError):
    """A sub-call would be deeper than `max_depth` allows."""


Result = str | SubCallError | BudgetSpent


class Recursion:
    """The sub-calls that all agents of one run share, with their models found.

    At most `concurrency` model calls are under way at once, and at most so many sub-agents run besides one for each
    agent that waits for it.  Raises `UnknownPrice` where a cost limit could not be kept.
    """

    def __init__(self, subcalls: SubCalls, budget: Budget) -> None:
        self.model = None if subcalls.model is None else get_model(subcalls.model)
        limited = budget.cost is not None or (subcalls.budget is not None and subcalls.budget.cost is not None)
        if self.model is not None and self.model.price is None and limited:
            raise UnknownPrice("a cost limit needs a model of sub-calls whose price is known; limit tokens or calls")
        self.models = {name: get_model(named) for name, named in subcalls.listed.items()}
        self.max_depth = subcalls.depth if budget.depth is None else min(subcalls.depth, int(budget.depth))
        self.budget, self.concurrency = subcalls.budget, subcalls.concurrency
        self.calls, self.agents = Slots(self.concurrency), Slots(self.concurrency)

    def model_for(self, name: str | None, agent: Meter) -> Model:
        """Return the model of a sub-call; raises `SubCallError` where there is none that may be used.

        A name is what a cell says: it is looked up, and never read as an address.
        """
        own = {m.name: m for m in (self.model, agent.model) if m is not None}
        model = self.model or agent.model
        if name is not None and (model := {**self.models, **own}.get(name)) is None:
            there = ", ".join(dict.fromkeys([*own, *self.models]))
            raise SubCallError(f"no model {name[:100]!r} may be asked here; there are: {there}", "invalid_arguments")
        if model.price is None and self.account_for(agent).priced:
            raise SubCallError(f"the price of {model.name} is not known, and this run has a cost limit", "denied")
        return model

    def account_for(self, agent: Meter) -> Account:
        """Return the account that a sub-call spends from."""
        if self.budget is None:
            return agent.account
        return agent.account.scope(self.budget, price=agent.model.price or (0.0, 0.0))


@dataclass
class SubcallRunner:
    """The sub-calls of one agent, which runs on `agent`.  Its methods have no docstrings, which cells would show."""

    agent: Meter
    settings: Recursion
    sub_agent: SubAgent

    def llm_query(
        self, prompt: str, context: Any = None, *, model: str | None = None, max_tokens: int | None = None
    ) -> str:
        _check([prompt], max_tokens)
        result = _Group(self, [(prompt, context)], model, max_tokens).asked()[0]
        if isinstance(result, BaseException):
            raise result
        return result

    def llm_query_batched(
        self,
        prompts: list[str],
        contexts: list[Any] | None = None,
        *,
        model: str | None = None,
        max_tokens: int | None = None,
    ) -> list[Any]:
        _check(prompts, max_tokens)
        if contexts is not None and len(contexts) != len(prompts):
            message = f"{len(prompts)} prompts and {len(contexts)} contexts: give one context for each prompt"
            raise ToolError("invalid_arguments", message)
        if not prompts:
            return []
        agent, needed = self.agent, len(prompts)
        if out := agent.account.spent_out():
            raise out
        left = agent.account.calls_left() if agent.node.depth < self.settings.max_depth else None
        if left is not None and needed > left:  # refused as a whole: nothing is paid for, nothing lost
            message = f"{needed} calls are needed and {left} are left: nothing was asked, send fewer prompts"
            raise SubCallError(message, "budget")
        calls = list(zip(prompts, contexts or [None] * needed, strict=True))
        results = _Group(self, calls, model, max_tokens, agent.node.batch()).asked()
        spent = [result for result in results if isinstance(result, BudgetSpent)]
        if spent and not any(isinstance(result, str) for result in results):
            raise spent[0]
        return [SubAnswer(r) if isinstance(r, str) else SubFailure(r.reason) for r in results]


def query_tools(asking: SubcallRunner) -> tuple[Tool, Tool]:
    """Return both tools of an agent.  They take as long as they take: time limits are the run's."""
    single, batched = _tools()
    return single.over(asking.llm_query), batched.over(asking.llm_query_batched)


@cache
def _tools() -> tuple[Tool, Tool]:
    """Return both tools as every run describes them: their signatures are read once, and nothing calls them."""
    nobody, forever = SubcallRunner(*cast("Any", (None, None, None))), float("inf")
    single = Tool("llm_query", HELP, nobody.llm_query, timeout=forever)
    batched = Tool("llm_query_batched", HELP_BATCHED, nobody.llm_query_batched, timeout=forever)
    _ = single.signature, batched.signature  # kept with the tools, as their fields are
    return single, batched


def _check(prompts: list[str], max_tokens: int | None) -> None:
    """Refuse what cannot be meant, before anything is asked; types were checked by the gateway."""
    for number, prompt in enumerate(prompts):
        if not prompt.strip():
            which = "the prompt of llm_query" if len(prompts) == 1 else f"prompt {number} of llm_query_batched"
            raise ToolError("invalid_arguments", f"{which} is empty")
    if max_tokens is not None and max_tokens < 1:
        raise ToolError("invalid_arguments", f"max_tokens is a number of tokens, 1 or more, not {max_tokens}")


class _Group:
    """Sub-calls that are asked in threads, each a prompt with its context; safe to use from several threads.

    `failure` ends all of them; once everything is `spent`, no further one is begun.
    """

    def __init__(
        self,
        asking: SubcallRunner,
        calls: Sequence[tuple[str, Any]],
        model: str | None,
        max_tokens: int | None,
        batch: str | None = None,
    ) -> None:
        self._asking, self._calls, self._how = asking, calls, (model, max_tokens, batch)
        self._agent, self._width = asking.agent, min(len(calls), asking.settings.concurrency)
        self._scope = Scope(self._agent.node.scope, cell_scope.get())
        self._numbers = self._agent.node.numbers(len(calls))
        self._next, self._working, self._lock = 0, self._width, threading.Lock()
        self._results: list[Result | None] = [None] * len(calls)
        self._failure: BaseException | None = None
        self._spent: BudgetSpent | None = None
        self._done = threading.Event()

    def asked(self) -> list[Result]:
        """Return the result of each call, in their order.

        Raises `BudgetSpent` when time is up, and `Cancelled` when the cell or the agent that asked was ended: what is
        under way then is given up, and what it gives later goes to nobody.
        """
        account, scope = self._agent.account, self._scope
        account.callers(self._width - 1)  # who asks waits, and needs no share of what is left
        try:
            scope.check()
            with scope.waking(self._done.set):
                for _ in range(self._width):
                    run = contextvars.copy_context().run
                    threading.Thread(target=run, args=(self._work,), daemon=True, name="llm_query").start()
                while not self._done.wait(min(_SLICE, account.seconds_left() or _SLICE)):
                    if account.seconds_left() == 0:
                        raise BudgetSpent(*(account.exceeded() or ("seconds", "time is up")))
            scope.check()
            if self._failure is not None:
                raise self._failure
        except BaseException as error:
            scope.end(str(error) or type(error).__name__)
            raise
        finally:
            self._stop()
            account.callers(1 - self._width)
            scope.release()
        return [result for r in self._results if (result := self._spent if r is None else r) is not None]

    def _stop(self) -> None:
        """Begin no further call."""
        with self._lock:
            self._next = len(self._calls)

    def _work(self) -> None:
        while (index := self._taken()) is not None:
            try:
                node = Caller(self._agent.node, self._numbers[index], self._scope)
                self._results[index] = _SubCall(self._asking, node, index, *self._calls[index], *self._how).ask()
            except BaseException as error:
                if isinstance(error, DepthExceeded) or not isinstance(error, (SubCallError, BudgetSpent)):
                    self._failure = error  # no other one would fare better
                    self._done.set()
                    break
                if isinstance(error, BudgetSpent) and self._agent.account.spent_out() is not None:
                    self._spent = error
                    self._stop()
                self._results[index] = error
        with self._lock:
            self._working -= 1
            if not self._working:
                self._done.set()

    def _taken(self) -> int | None:
        with self._lock:
            if self._failure is not None or self._scope.ended or self._next >= len(self._calls):
                return None
            self._next += 1
            return self._next - 1


@dataclass
class _SubCall:
    """A question of a cell, from its start to its end, with its events.

    `context` is handed to the sub-agent as its variable, or follows the prompt of a completion.  `batch` is the batch
    that it belongs to and `index` its place there.  Its end may come from another thread; only the first one counts.
    """

    asking: SubcallRunner
    node: Caller
    index: int
    prompt: str
    context: Any
    model: str | None
    max_tokens: int | None
    batch: str | None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _began: float | None = None
    _ended: bool = False

    @property
    def _who(self) -> dict[str, Any]:
        return {"node": self.node.path, "depth": self.node.depth}

    def ask(self) -> str:
        """Return the answer as text, worked out in this thread.

        Raises `SubCallError` where there is none, `BudgetSpent` where nothing is left for the agent that asks, and
        `Cancelled` where nobody waits for the answer any more.
        """
        node = self.node
        try:
            node.begin(lambda: self._end(error=("cancelled", "still under way when the run ended")))
            try:
                text, stop = self._answer()
            finally:
                node.end_children()  # whichever way it ended, and before its own end is told
            node.scope.check()
            self._end(text, stop=stop)
            return text
        except BaseException as error:
            kind, reason = _why(error)
            self._end(error=(kind, reason), stop=error.stop if isinstance(error, SubCallError) else None)
            if kind == "runtime" and not isinstance(error, SubCallError):
                raise SubCallError(reason) from error
            raise
        finally:
            node.over()

    def _answer(self) -> tuple[str, Stop | None]:
        """Return the text, and the stop of a sub-agent."""
        settings, node, agent = self.asking.settings, self.node, self.asking.agent
        most = settings.max_depth
        if node.depth > most:
            self._start("denied")
            raise DepthExceeded(f"llm_query may not go deeper than max_depth={most}", "denied")
        model = settings.model_for(self.model, agent)
        account = settings.account_for(agent)
        inner = agent.scoped(node, purpose="llm_query", model=model, max_tokens=self.max_tokens, account=account)
        if node.depth < most:
            self._start("agent", model.name)
            return self._by_agent(inner), Stop.ANSWERED
        self._start("completion", model.name)
        return self._by_completion(inner), None

    def _by_completion(self, inner: Meter) -> str:
        text, asked = self.prompt, self.max_tokens
        if self.context is not None:
            text = f"{text}\n\n{inline_context(self.context, limit=sys.maxsize)}"
        try:
            reply = inner.complete(Prompt.ask(text))
        except BudgetSpent as spent:
            if inner.account is self.asking.agent.account or self.asking.agent.account.spent_out() is not None:
                raise
            raise SubCallError(f"the limits of a sub-call are reached: {spent.reason}", "budget") from None
        used = reply.usage.output_tokens if reply.usage is not None else None
        if reply.cut_off and (asked is None or (used is not None and used < asked)):
            begin = f"; it began {reply.text[:200]!r}" if reply.text else ""
            length = "" if used is None else f" after {used} tokens"
            raise SubCallError(f"the reply was cut off{length}: ask for less, or split the prompt{begin}", "cut_off")
        if reply.finish_reason == "content_filter":
            raise SubCallError("the reply was withheld by a content filter: ask in another way")
        if not (text := without_reasoning(reply.text)).strip():
            raise SubCallError("the reply was empty: ask in another way")
        return text

    def _by_agent(self, inner: Meter) -> str:
        asking, agent = self.asking, self.asking.agent
        with asking.settings.agents.held(inner.node.scope, lender=agent.node):
            outcome = asking.sub_agent(self.prompt, self.context, inner)
        if outcome.answered:
            return str(outcome.answer)
        if outcome.stop in (Stop.SECONDS, Stop.TOKENS, Stop.COST, Stop.CALLS):
            spent = agent.account.spent_out()  # nothing is left for who asked either
            if spent is None and not agent.ledger.usage_of(inner.node.path).calls and inner.account is agent.account:
                spent = BudgetSpent(str(outcome.stop), outcome.reason)  # not even its first call was covered
            if spent is not None:
                raise spent
        pending = any(turn.pending for turn in outcome.turns)
        words = "" if pending else outcome.last_reply.strip()
        words = words or ("" if outcome.answer is None else str(outcome.answer))
        last = f"; its last words: {words[:200]!r}" if words else ""
        error = SubCallError(f"the sub-agent gave no answer ({outcome.stop}: {outcome.reason}){last}")
        error.stop = str(outcome.stop)
        raise error

    def _start(self, kind: Literal["completion", "agent", "denied"], model: str | None = None) -> None:
        """Record that it starts, as this kind."""
        agent, prompt = self.asking.agent, self.prompt
        with self._lock:
            if self._ended:
                return
            self._began = time.monotonic()
            # the request of a plain completion stores its prompt as a message
            stored = kind == "completion" and self.context is None
            agent.trace.record(
                "subcall_start",
                **self._who,
                parent=agent.node.path,
                turn=agent.turn,
                kind=kind,
                model=model,
                max_tokens=self.max_tokens,
                prompt_sha256=sha256(prompt) if stored else agent.trace.text(prompt),
                batch=self.batch,
                index=None if self.batch is None else self.index,
            )
        agent.hooks.notify("on_subcall_start", **self._who, kind=kind, model=model, prompt=prompt)

    def _end(self, answer: str | None = None, *, error: tuple[str, str] | None = None, stop: str | None = None) -> None:
        """Record that it ended: with an answer, or an error given as its kind and one line."""
        agent = self.asking.agent
        with self._lock:
            began, ended, self._ended = self._began, self._ended, True
            if ended or began is None:
                return
            used = agent.ledger.usage_of(self.node.path)
            told = {**self._who, "ok": error is None, "seconds": time.monotonic() - began, "usage": used}
            why = None if error is None else {"kind": error[0], "message": error[1]}
            hashed = None if answer is None else sha256(answer)
            agent.trace.record("subcall_end", **told, error=why, answer_sha256=hashed, stop=stop)
        agent.hooks.notify("on_subcall_end", **told, error=error and error[1], answer=answer)


def _why(error: BaseException) -> tuple[str, str]:
    """Return the kind of what a sub-call failed with, and one line of it."""
    match error:
        case SubCallError():
            return error.kind, error.reason
        case BudgetSpent():
            return "budget", error.reason
        case Cancelled():
            return "cancelled", str(error)
        case ModelError():
            return "runtime", str(error)
        case _:
            kind = "runtime" if isinstance(error, Exception) else "interrupted"
            return kind, f"{type(error).__name__}: {error}"
