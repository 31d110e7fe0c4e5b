"""The tools by which a model asks models, `llm_query` and `llm_query_batched`, and the threads in which they ask."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

from rlm_loop.accounting.budget import Account, BudgetSpent
from rlm_loop.accounting.call_tree import Caller
from rlm_loop.accounting.scope import Scope, cell_scope
from rlm_loop.agents.recursion.asking import SubcallRunner
from rlm_loop.agents.recursion.record import SubCall
from rlm_loop.agents.recursion.settings import DepthExceeded, SubCallError
from rlm_loop.repl.worker import SubAnswer, SubFailure
from rlm_loop.tools.function import Tool, ToolError

_SLICE = 0.25  # seconds: never wait longer without a look at the clock, which is an argument
_LOOK = 1_024  # prompts of a batch between two looks at it

Result = str | SubCallError | BudgetSpent
HELP = "Ask a fresh model, which sees only the prompt and the context."
HELP_BATCHED = "Ask for each prompt at the same time; results in order, each a str or a failure, with .ok and .error."


def query_tools(asking: SubcallRunner) -> tuple[Tool, Tool]:
    """Both tools, for the agent of `asking`.  They take as long as they take: time limits are the run's."""
    one, many = _functions(asking)
    known = _tools()
    return known[0].over(one), known[1].over(many)


@cache
def _tools() -> tuple[Tool, Tool]:
    """Both tools as every run describes them: their signatures are read once.  Nothing calls their functions."""
    one, many = _functions(cast("SubcallRunner", None))
    forever = float("inf")
    tools = (
        Tool("llm_query", HELP, one, timeout=forever),
        Tool("llm_query_batched", HELP_BATCHED, many, timeout=forever),
    )
    for tool in tools:
        _ = tool.signature  # kept with the tool, as its fields are
    return tools


def _functions(asking: SubcallRunner) -> tuple[Callable[..., str], Callable[..., list[Any]]]:
    def llm_query(prompt: str, context: Any = None, *, model: str | None = None, max_tokens: int | None = None) -> str:
        _check([prompt], max_tokens, asking.agent.account)
        result = _asked(asking, [SubCall(prompt, context, model, max_tokens)])[0]
        if isinstance(result, BaseException):
            raise result
        return result

    def llm_query_batched(
        prompts: list[str],
        contexts: list[Any] | None = None,
        *,
        model: str | None = None,
        max_tokens: int | None = None,
    ) -> list[Any]:
        account = asking.agent.account
        _check(prompts, max_tokens, account)
        if contexts is not None and len(contexts) != len(prompts):
            message = f"{len(prompts)} prompts and {len(contexts)} contexts: give one context for each prompt"
            raise ToolError("invalid_arguments", message)
        if not prompts:
            return []
        batch, calls = asking.agent.node.batch(), list[SubCall]()
        for number, prompt in enumerate(prompts):  # a cell can ask for hundreds of thousands
            if number % _LOOK == 0:
                _require_time(account)
            context = None if contexts is None else contexts[number]
            calls.append(SubCall(prompt, context, model, max_tokens, batch, number))
        _require_room(asking, calls)
        results = _asked(asking, calls)
        if not any(isinstance(result, str) for result in results):
            for result in results:
                if isinstance(result, BudgetSpent):
                    raise result
        return [SubAnswer(r) if isinstance(r, str) else SubFailure(r.reason) for r in results]

    return llm_query, llm_query_batched


def _asked(asking: SubcallRunner, calls: Sequence[SubCall]) -> list[Result]:
    """The result of each call, in their order.

    Raises `BudgetSpent` when time is up, and `Cancelled` when the cell or the agent that asked was ended: what is
    under way then is given up, and what it gives later goes to nobody.
    """
    agent = asking.agent
    scope = Scope(agent.node.scope, cell_scope.get())
    account = agent.account
    account.callers(len(calls))
    asking.wait(1)
    group = _Group(asking, calls, scope)
    try:
        scope.check()
        with scope.waking(group.done.set):
            group.start(min(len(calls), asking.settings.tree.calls.limit))
            while not group.done.wait(min(_SLICE, account.seconds_left() or _SLICE)):
                _require_time(account)
        scope.check()
        if group.failure is not None:
            raise group.failure
    except BaseException as error:
        scope.end(str(error) or type(error).__name__)
        raise
    finally:
        group.skip_rest(None)
        asking.wait(-1)
        scope.release()
    return [result for result in group.results if result is not None]


class _Group:
    """Sub-calls that are asked in threads, each numbered when its turn comes; safe to use from several threads."""

    def __init__(self, asking: SubcallRunner, calls: Sequence[SubCall], scope: Scope) -> None:
        self._asking, self._calls, self._scope = asking, calls, scope
        self._numbers = asking.agent.node.numbers(len(calls))
        self._next = 0
        self._lock = threading.Lock()
        self._left = len(calls)
        self.results: list[Result | None] = [None] * len(calls)
        self.failure: BaseException | None = None
        self.done = threading.Event()

    def start(self, threads: int) -> None:
        for _ in range(threads):
            context = contextvars.copy_context()
            threading.Thread(target=context.run, args=(self._work,), daemon=True, name="llm_query").start()

    def skip_rest(self, result: Result | None) -> None:
        """Give the calls that were not begun a result, without asking."""
        with self._lock:
            rest = len(self._calls) - self._next
            self.results[self._next :] = [result] * rest
            self._next += rest
            self._left -= rest
        self._asking.agent.account.callers(-rest)

    def _work(self) -> None:
        while (index := self._taken()) is not None:
            try:
                self.results[index] = self._one(index)
            except BaseException as error:
                self.failure = error
                self.done.set()
            finally:
                self._asking.agent.account.callers(-1)
                with self._lock:
                    self._left -= 1
                    if not self._left:
                        self.done.set()

    def _taken(self) -> int | None:
        with self._lock:
            if self.failure is not None or self._scope.ended or self._next == len(self._calls):
                return None
            self._next += 1
            return self._next - 1

    def _one(self, index: int) -> Result:
        agent = self._asking.agent
        try:
            return self._asking.ask(self._calls[index], Caller(agent.node, self._numbers[index], self._scope))
        except DepthExceeded:  # no other one would fare better
            raise
        except (SubCallError, BudgetSpent) as error:
            if isinstance(error, BudgetSpent) and agent.account.spent_out() is not None:
                self.skip_rest(error)
            return error


def _require_time(account: Account) -> None:
    if account.seconds_left() == 0:
        raise BudgetSpent(*(account.exceeded() or ("seconds", "time is up")))


def _check(prompts: list[str], max_tokens: int | None, account: Account) -> None:
    """Refuse what cannot be meant, before anything is asked."""
    for number, prompt in enumerate(prompts):
        if number % _LOOK == 0:
            _require_time(account)
        if not isinstance(prompt, str):
            raise ToolError("invalid_arguments", f"a prompt is a str, not {type(prompt).__name__}: write it out")
        if not prompt.strip():
            which = "the prompt of llm_query" if len(prompts) == 1 else f"prompt {number} of llm_query_batched"
            raise ToolError("invalid_arguments", f"{which} is empty")
    if max_tokens is not None and max_tokens < 1:
        raise ToolError("invalid_arguments", f"max_tokens is a number of tokens, 1 or more, not {max_tokens}")


def _require_room(asking: SubcallRunner, calls: Sequence[SubCall]) -> None:
    """Refuse as a whole what the limit of calls cannot answer as a whole: nothing is paid for, nothing lost."""
    agent, settings = asking.agent, asking.settings
    if spent := agent.account.spent_out():
        raise spent
    left, needed = agent.account.calls_left(), len(calls)
    asks = agent.node.depth < settings.max_depth or settings.on_depth == "flat"
    if left is None or not asks or settings.tree.answers is not None:  # nobody knows how many are answered already
        return
    if needed > left:
        message = f"{needed} calls are needed and {left} are left: nothing was asked, send fewer prompts"
        raise SubCallError(message, "budget")
