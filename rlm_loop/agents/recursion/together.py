"""Several sub-calls at once, in threads of their own, so that whoever asked can stop waiting at any moment."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Sequence

from rlm_loop.accounting.budget import BudgetSpent
from rlm_loop.accounting.call_tree import Caller
from rlm_loop.accounting.scope import Scope, cell_scope
from rlm_loop.agents.recursion.asking import SubcallRunner
from rlm_loop.agents.recursion.record import SubCall
from rlm_loop.agents.recursion.settings import SubCallError

_SLICE = 0.25  # seconds: never wait longer without a look at the clock, which is an argument

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
                    if account.seconds_left() == 0:
                        raise BudgetSpent(*(account.exceeded() or ("seconds", "time is up")))
            scope.check()
            if group.failure is not None:
                raise group.failure
        except BaseException as error:
            scope.end(str(error) or type(error).__name__)
            raise
        finally:
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
    def __init__(self, asking: SubcallRunner, calls: Sequence[SubCall], scope: Scope) -> None:
        self._asking, self._calls, self._scope = asking, calls, scope
        numbers = asking.agent.node.numbers(len(calls))
        self._todo = iter(list(zip(range(len(calls)), numbers, strict=True)))
        self._lock = threading.Lock()
        self._left = len(calls)
        self.results: list[Result | None] = [None] * len(calls)
        self.failure: BaseException | None = None
        self.done = threading.Event()

    def start(self, threads: int) -> None:
        for _ in range(threads):
            context = contextvars.copy_context()
            threading.Thread(target=context.run, args=(self._work,), daemon=True, name="llm_query").start()

    def _work(self) -> None:
        while True:
            with self._lock:
                index, number = next(self._todo, (-1, 0))
            if index < 0:
                return
            try:
                self.results[index] = self._one(self._calls[index], number)
            except BaseException as error:
                self.failure = error
                self.done.set()
            finally:
                self._asking.agent.account.callers(-1)
                with self._lock:
                    self._left -= 1
                    if not self._left:
                        self.done.set()

    def _one(self, asked: SubCall, number: int) -> Result:
        try:
            return self._asking.ask(asked, Caller(self._asking.agent.node, number, self._scope))
        except (SubCallError, BudgetSpent) as error:
            return error
