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

    At most `concurrency` model calls are under way at once, and at most so many sub-agents run besides one for each
    agent that waits for it.  Raises `UnknownPrice` where a cost limit could not be kept.
    """

    def __init__(self, subcalls: SubCalls, budget: Budget) -> None:
        self.model = None if subcalls.model is None else get_model(subcalls.model)
        limited = budget.cost is not None or (subcalls.budget is not None and subcalls.budget.cost is not None)
        if self.model is not None and self.model.price is None and limited:
            raise UnknownPrice("a cost limit needs a model of sub-calls whose price is known; limit tokens or calls")
        self.models = {name: get_model(named) for name, named in subcalls.models}
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
        (result,) = _Group(self, [(prompt, context)], model, max_tokens).asked()
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
        results = _Group(self, calls, model, max_tokens, self.agent.node.batch()).asked()
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


class _Group:
    """Sub-calls that are asked in threads, each a prompt with its context; safe to use from several threads.

    A `failure` ends all of them; once everything is `spent`, no further one is begun.
    """

    def __init__(
        self,
        asking: SubcallRunner,
        calls: Sequence[tuple[str, Any]],
        model: str | None,
        max_tokens: int | None,
        batch: str | None = None,
    ) -> None:
        if max_tokens is not None and max_tokens < 1:
            raise ToolError("invalid_arguments", f"max_tokens is a number of tokens, 1 or more, not {max_tokens}")
        self._asking, self._calls, self._how = asking, calls, (model, max_tokens, batch)
        self._agent, self._width = asking.agent, min(len(calls), asking.settings.concurrency)
        self._scope = Scope(self._agent.node.scope, cell_scope.get())
        self._numbers = self._agent.node.numbers(len(calls))
        self._next = deque(range(len(calls)))
        self._results: dict[int, Result] = {}
        self._failure: BaseException | None = None
        self._spent: BudgetSpent | None = None
        self._done, self._lock, self._working = threading.Event(), threading.Lock(), self._width

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
                        raise account.spent_out() or BudgetSpent("seconds", "the time is up")
            scope.check()
            if self._failure is not None:
                raise self._failure
        except BaseException as error:
            scope.end(str(error) or type(error).__name__)
            raise
        finally:
            self._next.clear()
            account.callers(1 - self._width)
            scope.release()
        results = (self._results.get(index, self._spent) for index in range(len(self._calls)))
        return [result for result in results if result is not None]

    def _work(self) -> None:
        with suppress(IndexError):  # nothing is left to ask
            while self._failure is None and not self._scope.ended:
                self._ask(self._next.popleft())
        with self._lock:
            self._working -= 1
            if not self._working or self._failure is not None:
                self._done.set()

    def _ask(self, index: int) -> None:
        node = Caller(self._agent.node, self._numbers[index], self._scope)
        try:
            self._results[index] = _SubCall(self._asking, node, index, *self._calls[index], *self._how).ask()
        except DepthExceeded as error:
            self._failure = error  # no other one would fare better
        except SubCallError as error:
            self._results[index] = error
        except BudgetSpent as error:
            self._results[index] = error
            if self._agent.account.spent_out() is not None:
                self._spent = error
                self._next.clear()
        except BaseException as error:
            self._failure = error


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
        except SubCallError as error:
            self._end(error=(error.kind, error.reason), stop=error.stop)
            raise
        except BudgetSpent as spent:
            self._end(error=("budget", spent.reason))
            raise
        except Cancelled as cancelled:
            self._end(error=("cancelled", str(cancelled)))
            raise
        except Exception as error:
            reason = str(error) if isinstance(error, ModelError) else describe(error)
            self._end(error=("runtime", reason))
            raise SubCallError(reason) from error
        except BaseException as error:
            self._end(error=("interrupted", describe(error)))
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

    def _by_agent(self, inner: Meter) -> str:
        agent = self.asking.agent
        with self.asking.settings.agents.held(inner.node.scope, lender=agent.node):
            outcome = self.asking.sub_agent(self.prompt, self.context, inner)
        if outcome.answered:
            return str(outcome.answer)
        if (spent := agent.account.spent_out()) is not None:  # nothing is left for the agent that asked either
            raise spent
        last = "" if outcome.answer is None else f"; its last words: {str(outcome.answer)[:200]!r}"
        error = SubCallError(f"the sub-agent gave no answer ({outcome.stop}: {outcome.reason}){last}")
        error.stop = str(outcome.stop)
        raise error

    def _start(self, kind: Literal["completion", "agent", "denied"], model: str | None = None) -> None:
        """Record that it starts, as this kind."""
        agent, node, prompt = self.asking.agent, self.node, self.prompt
        with self._lock:
            if self._ended:
                return
            self._began = time.monotonic()
            # the request of a plain completion stores its prompt as a message
            stored = kind == "completion" and self.context is None
            agent.trace.record(
                "subcall_start",
                node=node.path,
                depth=node.depth,
                parent=agent.node.path,
                turn=agent.turn,
                kind=kind,
                model=model,
                max_tokens=self.max_tokens,
                prompt_sha256=sha256(prompt) if stored else agent.trace.text(prompt),
                batch=self.batch,
                index=None if self.batch is None else self.index,
            )
        agent.hooks.notify("on_subcall_start", node=node.path, depth=node.depth, kind=kind, model=model, prompt=prompt)

    def _end(self, answer: str | None = None, *, error: tuple[str, str] | None = None, stop: str | None = None) -> None:
        """Record that it ended: with an answer, or an error given as its kind and one line."""
        agent, node = self.asking.agent, self.node
        with self._lock:
            began, ended, self._ended = self._began, self._ended, True
            if ended or began is None:
                return
            used, seconds = agent.ledger.usage_of(node.path), time.monotonic() - began
            told = dict[str, Any](node=node.path, depth=node.depth, ok=error is None, seconds=seconds, usage=used)
            why = None if error is None else {"kind": error[0], "message": error[1]}
            hashed = None if answer is None else sha256(answer)
            agent.trace.record("subcall_end", **told, error=why, answer_sha256=hashed, stop=stop)
        agent.hooks.notify("on_subcall_end", **told, error=error and error[1], answer=answer)
