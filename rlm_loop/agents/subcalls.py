"""Sub-calls: `llm_query` is a tool whose body is a model call, or the loop again; the loop knows nothing of it.

The root is depth 0.  A query made at depth d runs at depth d + 1: as an agent with a REPL of its own while
d + 1 < max_depth, and as one plain completion where d + 1 == max_depth.
"""

from __future__ import annotations

import contextvars
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, cast

from rlm_loop.accounting.budget import Budget, BudgetSpent, UnknownPrice
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
from rlm_loop.tools.function import Tool, ToolError, describe

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


class DepthExceeded(SubCallError):
    """A sub-call would be deeper than `max_depth` allows."""


Result = str | SubCallError | BudgetSpent


class Recursion:
    """The sub-calls that all agents of one run share, with their models found.

    At most `concurrency` model calls are under way at once.  So many sub-agents of the root run at once, and one below
    each of them: a model that asks for many of them starts no crowd of processes.  Raises `UnknownPrice` where a cost
    limit could not be kept.
    """

    def __init__(self, subcalls: SubCalls, budget: Budget) -> None:
        self.model = None if subcalls.model is None else get_model(subcalls.model)
        self.models = {name: get_model(named) for name, named in subcalls.models}
        limited = budget.cost is not None or (subcalls.budget is not None and subcalls.budget.cost is not None)
        named = (self.model, *self.models.values())
        if limited and any(model is not None and model.price is None for model in named):
            raise UnknownPrice("a cost limit needs models of sub-calls whose price is known; limit tokens or calls")
        self.max_depth = subcalls.depth if budget.depth is None else min(subcalls.depth, int(budget.depth))
        self.budget, self.concurrency = subcalls.budget, subcalls.concurrency
        self.calls = Slots(self.concurrency)

    def model_for(self, name: str | None, agent: Meter) -> Model:
        """Return the model of a sub-call; raises `SubCallError` where there is none that may be used.

        A name is what a cell says: it is looked up, and never read as an address.
        """
        own = {m.name: m for m in (self.model, agent.model) if m is not None}
        model = self.model or agent.model
        if name is not None and (model := {**self.models, **own}.get(name)) is None:
            there = ", ".join(dict.fromkeys([*own, *self.models]))
            raise SubCallError(f"no model {name[:100]!r} may be asked here; there are: {there}", "invalid_arguments")
        return model


@dataclass
class SubcallRunner:
    """The sub-calls of one agent, which runs on `agent`.  Its methods have no docstrings, which cells would show."""

    agent: Meter
    settings: Recursion
    sub_agent: SubAgent

    def llm_query(
        self, prompt: str, context: Any = None, *, model: str | None = None, max_tokens: int | None = None
    ) -> str:
        (result,) = self._asked([(prompt, context)], model, max_tokens)
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
        if contexts is not None and len(contexts) != len(prompts):
            message = f"{len(prompts)} prompts and {len(contexts)} contexts: give one context for each prompt"
            raise ToolError("invalid_arguments", message)
        if not prompts:
            return []
        calls = list(zip(prompts, contexts or [None] * len(prompts), strict=True))
        results = self._asked(calls, model, max_tokens, self.agent.node.batch())
        spent = [result for result in results if isinstance(result, BudgetSpent)]
        if spent and not any(isinstance(result, str) for result in results):
            raise spent[0]
        return [SubAnswer(r) if isinstance(r, str) else SubFailure(r.reason) for r in results]

    def _asked(
        self, calls: Sequence[tuple[str, Any]], model: str | None, max_tokens: int | None, batch: str | None = None
    ) -> list[Result]:
        # Each call is a prompt with its context, asked in a thread; the results are in their order.  `BudgetSpent` is
        # raised when time is up, and `Cancelled` when the cell or the agent that asked was ended: what is under way
        # then is given up, and what it gives later goes to nobody.
        if max_tokens is not None and max_tokens < 1:
            raise ToolError("invalid_arguments", f"max_tokens is a number of tokens, 1 or more, not {max_tokens}")
        node, account = self.agent.node, self.agent.account
        one_by_one = 0 < node.depth < self.settings.max_depth - 1  # sub-agents of a sub-agent
        width = 1 if one_by_one else min(len(calls), self.settings.concurrency)
        scope, numbers, done = Scope(node.scope, cell_scope.get()), node.numbers(len(calls)), threading.Event()
        left, results, failures = deque(range(len(calls))), dict[int, Result](), list[BaseException]()
        working = [None] * width

        def work() -> None:
            with suppress(IndexError):  # nothing is left to ask
                while not failures and not scope.ended:
                    index = left.popleft()
                    below, place = Caller(node, numbers[index], scope), (batch, index if batch else None)
                    try:
                        results[index] = _SubCall(self, below, place, *calls[index], model, max_tokens).ask()
                    except (SubCallError, BudgetSpent) as error:
                        results[index] = error
                        if isinstance(error, DepthExceeded):  # no other one would fare better
                            failures.append(error)
                        elif isinstance(error, BudgetSpent) and account.spent_out() is not None:
                            left.clear()
                    except BaseException as error:
                        failures.append(error)
            working.pop()
            if not working or failures:
                done.set()

        account.callers(width - 1)  # who asks waits, and needs no share of what is left
        try:
            scope.check()
            with scope.waking(done.set):
                for _ in range(width):
                    run = contextvars.copy_context().run
                    threading.Thread(target=run, args=(work,), daemon=True, name="llm_query").start()
                while not done.wait(min(_SLICE, account.seconds_left() or _SLICE)):
                    if account.seconds_left() == 0:
                        raise account.spent_out() or BudgetSpent("seconds", "the time is up")
            scope.check()
            if failures:
                raise failures[0]
        except BaseException as error:
            scope.end(str(error) or type(error).__name__)
            raise
        finally:
            left.clear()
            account.callers(1 - width)
            scope.release()
        spent = [result for result in results.values() if isinstance(result, BudgetSpent)]
        return [results[index] if index in results else spent[-1] for index in range(len(calls))]


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


@dataclass
class _SubCall:
    """A question of a cell, from its start to its end, with its events.

    `context` is handed to the sub-agent as its variable, or follows the prompt of a completion.  `place` has the batch
    that it belongs to and its index there.  Its end may come from another thread; only the first one counts.
    """

    asking: SubcallRunner
    node: Caller
    place: tuple[str | None, int | None]
    prompt: str
    context: Any
    model: str | None
    max_tokens: int | None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _began: float | None = None
    _ended: bool = False

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
            why = _why(error)
            self._end(error=why, stop=getattr(error, "stop", None))
            if isinstance(error, SubCallError) or not isinstance(error, Exception):
                raise
            raise SubCallError(why[1]) from error
        finally:
            node.over()

    def _answer(self) -> tuple[str, Stop | None]:
        """Return the text, and the stop of a sub-agent."""
        settings, node, agent = self.asking.settings, self.node, self.asking.agent
        if node.depth > settings.max_depth:
            self._start("denied")
            raise DepthExceeded(f"llm_query may not go deeper than max_depth={settings.max_depth}", "denied")
        model, account = settings.model_for(self.model, agent), agent.account
        if settings.budget is not None:
            account = account.scope(settings.budget, price=model.price)
        inner = agent.scoped(node, purpose="llm_query", model=model, max_tokens=self.max_tokens, account=account)
        if node.depth == settings.max_depth:
            self._start("completion", model.name)
            return self._by_completion(inner), None
        self._start("agent", model.name)
        outcome = self.asking.sub_agent(self.prompt, self.context, inner)
        if outcome.answered:
            return str(outcome.answer), outcome.stop
        if (spent := agent.account.spent_out()) is not None:  # nothing is left for the agent that asked either
            raise spent
        last = "" if outcome.answer is None else f"; its last words: {str(outcome.answer)[:200]!r}"
        error = SubCallError(f"the sub-agent gave no answer ({outcome.stop}: {outcome.reason}){last}")
        error.stop = str(outcome.stop)
        raise error

    def _by_completion(self, inner: Meter) -> str:
        text, agent = self.prompt, self.asking.agent
        if self.context is not None:
            text = f"{text}\n\n{inline_context(self.context, limit=sys.maxsize)}"
        try:
            reply = inner.complete(Prompt.ask(text))
        except BudgetSpent as spent:
            if inner.account is agent.account or agent.account.spent_out() is not None:
                raise
            raise SubCallError(f"the limits of a sub-call are reached: {spent.reason}", "budget") from None
        used = reply.usage.output_tokens if reply.usage is not None else None
        if reply.cut_off and (self.max_tokens is None or (used is not None and used < self.max_tokens)):
            begin = f"; it began {reply.text[:200]!r}" if reply.text else ""
            length = "" if used is None else f" after {used} tokens"
            raise SubCallError(f"the reply was cut off{length}: ask for less, or split the prompt{begin}", "cut_off")
        if reply.finish_reason == "content_filter":
            raise SubCallError("the reply was withheld by a content filter: ask in another way")
        if not (text := without_reasoning(reply.text)).strip():
            raise SubCallError("the reply was empty: ask in another way")
        return text

    def _start(self, kind: Literal["completion", "agent", "denied"], model: str | None = None) -> None:
        """Record that it starts, as this kind."""
        agent, node, prompt = self.asking.agent, self.node, self.prompt
        with self._lock:
            if self._ended:
                return
            self._began = time.monotonic()
            # the request of a plain completion stores its prompt as a message
            stored = kind == "completion" and self.context is None
            told = dict[str, Any](node=node.path, depth=node.depth, kind=kind, model=model)
            asked: dict[str, Any] = {"parent": agent.node.path, "turn": agent.turn, "max_tokens": self.max_tokens}
            text = sha256(prompt) if stored else agent.trace.text(prompt)
            batch, index = self.place
            agent.trace.record("subcall_start", **told, **asked, prompt_sha256=text, batch=batch, index=index)
        agent.hooks.notify("on_subcall_start", **told, prompt=prompt)

    def _end(self, answer: str | None = None, *, error: tuple[str, str] | None = None, stop: str | None = None) -> None:
        """Record that it ended: with an answer, or an error given as its kind and one line."""
        agent, node = self.asking.agent, self.node
        with self._lock:
            began, ended, self._ended = self._began, self._ended, True
            if ended or began is None:
                return
            used, seconds = agent.ledger.usage_of(node.path), time.monotonic() - began
            told = dict[str, Any](node=node.path, depth=node.depth, ok=error is None, seconds=seconds, usage=used)
            why = error and dict(zip(("kind", "message"), error, strict=True))
            hashed = None if answer is None else sha256(answer)
            agent.trace.record("subcall_end", **told, error=why, answer_sha256=hashed, stop=stop)
        agent.hooks.notify("on_subcall_end", **told, error=error and error[1], answer=answer)


def _why(error: BaseException) -> tuple[str, str]:
    """Return the kind of an error that ended a sub-call, and one line that says it."""
    if isinstance(error, SubCallError):
        return error.kind, error.reason
    if isinstance(error, (BudgetSpent, Cancelled)):
        return "budget" if isinstance(error, BudgetSpent) else "cancelled", str(error)
    said = str(error) if isinstance(error, ModelError) else describe(error)
    return "runtime" if isinstance(error, Exception) else "interrupted", said
