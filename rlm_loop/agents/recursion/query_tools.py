"""The tools by which a model asks models, `llm_query` and `llm_query_batched`, and the threads in which they ask."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, cast

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
_T = TypeVar("_T")

Result = str | SubCallError | BudgetSpent


class BatchRunner:
    """Runs the sub-calls of one agent; safe to call from several threads of its cells at once."""

    def __init__(self, asking: SubcallRunner) -> None:
        self._asking = asking
        self._lock = threading.Lock()
        self._waiting = 0

    def run(self, calls: Sequence[SubCall]) -> list[Result]:
        """What each call came to, in the order of the calls.

        Raises `BudgetSpent` when time is up, and `Cancelled` when the cell or the agent that asked was ended: what is
        under way then is given up, and what it gives later goes to nobody.
        """
        agent = self._asking.agent
        scope = Scope(agent.node.scope, cell_scope.get())
        account = agent.account
        account.callers(len(calls))
        self._parent_waits(1)
        group = _Group(self._asking, calls, scope)
        try:
            scope.check()
            with scope.waking(group.done.set):
                group.start(min(len(calls), self._asking.settings.tree.calls.limit))
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
            self._parent_waits(-1)
            scope.release()
        return [result for result in group.results if result is not None]

    def _parent_waits(self, change: int) -> None:
        """Who waits for sub-calls does not call a model itself, and needs no share of what is left."""
        with self._lock:
            before, self._waiting = self._waiting, self._waiting + change
            if not before or not self._waiting:
                self._asking.agent.account.callers(-change)


class _Group:
    """Sub-calls that are asked in threads, each made and numbered when its turn comes."""

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
    together = BatchRunner(asking)

    def llm_query(prompt: str, context: Any = None, *, model: str | None = None, max_tokens: int | None = None) -> str:
        _check([prompt], max_tokens, asking.agent.account)
        result = together.run([SubCall(prompt, context, model, max_tokens)])[0]
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
        batch = _Batch(prompts, contexts, model, max_tokens, asking.agent.node.batch())
        results = together.run(_with_room(asking, batch))
        if not any(isinstance(result, str) for result in results):
            for result in results:
                if isinstance(result, BudgetSpent):
                    raise result
        return [_shown(result) for result in results]

    return llm_query, llm_query_batched


@dataclass(frozen=True)
class _Batch(Sequence[SubCall]):
    """Sub-calls that are made when they are looked at: a cell can ask for hundreds of thousands."""

    prompts: list[str]
    contexts: list[Any] | None
    model: str | None
    max_tokens: int | None
    name: str

    def __len__(self) -> int:
        return len(self.prompts)

    def __getitem__(self, index: int) -> SubCall:  # pyright: ignore[reportIncompatibleMethodOverride]
        context = None if self.contexts is None else self.contexts[index]
        return SubCall(self.prompts[index], context, self.model, self.max_tokens, self.name, index)


def _require_time(account: Account) -> None:
    if account.seconds_left() == 0:
        raise BudgetSpent(*(account.exceeded() or ("seconds", "time is up")))


def _in_time(items: Iterable[_T], account: Account) -> Iterator[_T]:
    """Yield the items as long as the run has time."""
    for number, item in enumerate(items):
        if number % _LOOK == 0:
            _require_time(account)
        yield item


def _check(prompts: list[str], max_tokens: int | None, account: Account) -> None:
    """Refuse what cannot be meant, before anything is asked."""
    for number, prompt in enumerate(_in_time(prompts, account)):
        if not isinstance(prompt, str):
            raise ToolError("invalid_arguments", f"a prompt is a str, not {type(prompt).__name__}: write it out")
        if not prompt.strip():
            which = "the prompt of llm_query" if len(prompts) == 1 else f"prompt {number} of llm_query_batched"
            raise ToolError("invalid_arguments", f"{which} is empty")
    if max_tokens is not None and max_tokens < 1:
        raise ToolError("invalid_arguments", f"max_tokens is a number of tokens, 1 or more, not {max_tokens}")


def _with_room(asking: SubcallRunner, calls: Sequence[SubCall]) -> Sequence[SubCall]:
    """Return the calls; refuse as a whole what cannot be answered as a whole: nothing is paid for, nothing lost."""
    agent, settings = asking.agent, asking.settings
    if spent := agent.account.spent_out():
        raise spent
    depth = agent.node.depth + 1
    left = agent.account.calls_left()
    if left is None or (depth > settings.max_depth and settings.on_depth != "flat"):
        return calls
    needed = len(calls)
    if settings.tree.answers is not None:
        calls = [*_in_time(calls, agent.account)]
        model = settings.model_for(calls[0].model, agent)[0].name
        keys = {asking.key(call, depth, model) for call in _in_time(calls, agent.account)}
        needed = sum(not settings.tree.answers.known(key) for key in keys)
    if needed > left:
        message = f"{needed} calls are needed and {left} are left: nothing was asked, send fewer prompts"
        raise SubCallError(message, "budget")
    return calls


def _shown(result: str | SubCallError | BudgetSpent) -> SubAnswer | SubFailure:
    if isinstance(result, str):
        return SubAnswer(result)
    return SubFailure(result.reason)
