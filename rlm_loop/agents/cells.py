"""The REPL of a run: opened when a cell first needs it, and given back or closed at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from rlm_loop.accounting.limits import BudgetSpent
from rlm_loop.repl.base import CellCall, CellResult, ReplError, Session
from rlm_loop.repl.rebuild import run_again
from rlm_loop.repl.records import CellRecord

_LAST = 2.0  # seconds to take the artifact of a run whose time is up; a `__repr__` of a cell's may never end
_HURRY = 0.2  # seconds for a cell to stop at the time limit of the run, which is to be kept


class Cells:
    """Runs the cells of one run in a session.

    `source` makes the session when it is first needed, or is a session of the caller's.  `context` becomes its variable
    of that name.
    """

    def __init__(self, source: Callable[[], Session] | Session, context: Any = None) -> None:
        self._lent = source if isinstance(source, Session) else None
        self._make = source if not isinstance(source, Session) else lambda: source
        self._context = context
        self._functions: Mapping[str, Callable[..., Any]] = {}
        self._told: CellResult | None = None  # the latest cell of which the calls were asked for
        self._session: Session | None = None
        self._bound: list[str] = []  # names that the run put into the session

    def offer(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        """Set the host functions that cells may call."""
        self._functions = functions

    @property
    def isolation(self) -> str:
        return "" if self._session is None else self._session.isolation

    @property
    def last(self) -> CellResult | None:
        """The result of the latest cell, also where running it raised."""
        return None if self._session is None else self._session.last

    def calls_made(self) -> Sequence[CellCall]:
        """Calls of host functions by the latest cell; none where this was asked for before."""
        before, self._told = self._told, self.last
        return () if self._told is None or self._told is before else self._told.calls

    def run(self, code: str, seconds: float | None, left: float | None) -> CellResult:
        """Run a cell for `seconds`, and no longer than is `left` of the run; raises `BudgetSpent` where none is."""
        if left is None or (seconds is not None and seconds < left):
            return (self._session or self._open()).run(code, timeout=seconds)
        if left == 0:
            raise BudgetSpent("seconds", "the time of the run is up: the cell was not run")
        return (self._session or self._open()).run(code, timeout=left, grace=_HURRY)

    def evaluate(self, expression: str, seconds: float | None, left: float | None) -> Any:
        """The value of an expression; `None` where no cell was ever run.  Raises as `Session.get` does."""
        if self._session is None and self._lent is None:
            return None
        if left is not None:
            seconds = max(left, _LAST) if seconds is None else min(seconds, max(left, _LAST))
        return self._open().get(expression, timeout=seconds)

    def resume(self, cells: Sequence[CellRecord]) -> tuple[str, ...]:
        """Run recorded cells again, with recorded answers of the host; returns what differed, a line each."""
        session = self._open()
        try:
            return run_again(session, cells, self._functions)
        finally:
            session.new_run()
            self._told = session.last

    def close(self) -> None:
        """Close the session; one of the caller's stays open, without the names that the run bound."""
        session = self._session
        if session is None:
            return
        if session is self._lent:
            with suppress(ReplError):  # it was closed meanwhile, or is broken: there is nothing to give back
                session.give_back(self._bound)
        else:
            session.close()

    def _open(self) -> Session:
        if self._session is None:
            session = self._session = self._make()
            try:
                session.new_run()
                if self._context is not None:
                    session.set("context", self._context, reserved=True)
                    self._bound.append("context")
                session.add_tools(self._functions)
                self._bound += self._functions
            except BaseException:
                self.close()
                self._session = None
                raise
            self._told = session.last
        return self._session
