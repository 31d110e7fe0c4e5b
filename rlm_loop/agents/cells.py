"""The REPL of a run: opened when a cell first needs it, and given back or closed at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from rlm_loop.accounting.limits import BudgetSpent
from rlm_loop.repl.base import CellResult, ReplError, Session
from rlm_loop.repl.rebuild import run_again
from rlm_loop.repl.records import CellRecord

_LAST = 2.0  # seconds to take the artifact of a run whose time is up; a `__repr__` of a cell's may never end
_HURRY = 0.2  # seconds for a cell to stop at the time limit of the run, which is to be kept


class Cells:
    """Runs the cells of one run in a session; with `kept`, of one run after the other.

    `source` makes the session when it is first needed, or is a session of the caller's.  `context` becomes its variable
    of that name, and `functions` are the host functions that cells may call.
    """

    def __init__(self, source: Callable[[], Session] | Session, context: Any = None, *, kept: bool = False) -> None:
        self.context = context
        self.functions: Mapping[str, Callable[..., Any]] = {}
        self.kept = kept
        self._source = source
        self._session: Session | None = None
        self._begun = False
        self._context: Any = None  # that the session has
        self._names: list[str] = []  # that the run put into the session
        self._seen: CellResult | None = None

    @property
    def isolation(self) -> str:
        """The isolation of the cells from this machine; empty where no cell was run."""
        return self._session.isolation if self._begun and self._session is not None else ""

    def new_result(self) -> CellResult | None:
        """The result of the latest cell, also where running it raised; `None` where it was asked for before."""
        if not self._begun or self._session is None:
            return None
        before, self._seen = self._seen, self._session.last
        return None if self._seen is before else self._seen

    def run(self, code: str, seconds: float | None, left: float | None) -> CellResult:
        """Run a cell for `seconds`, and no longer than is `left` of the run; raises `BudgetSpent` where none is."""
        session = self._session if self._begun and self._session is not None else self._open()
        if left is None or (seconds is not None and seconds < left):
            return session.run(code, timeout=seconds)
        if left == 0:
            raise BudgetSpent("seconds", "the time of the run is up: the cell was not run")
        return session.run(code, timeout=left, grace=_HURRY)

    def evaluate(self, expression: str, seconds: float | None, left: float | None) -> Any:
        """The value of an expression; `None` where no session was ever opened.  Raises as `Session.get` does."""
        if self._session is None and not isinstance(self._source, Session):
            return None
        if left is not None:
            seconds = max(left, _LAST) if seconds is None else min(seconds, max(left, _LAST))
        return self._open().get(expression, timeout=seconds)

    def resume(self, cells: Sequence[CellRecord]) -> tuple[str, ...]:
        """Run recorded cells again, with recorded answers of the host; returns what differed, a line each."""
        session = self._open()
        try:
            return run_again(session, cells, self.functions)
        finally:
            session.new_run()
            self._seen = session.last

    def leave(self) -> None:
        """End a run: a session that is kept or the caller's loses the names that the run put into it, or is closed."""
        session, self._begun = self._session, False
        if session is None:
            return
        if self.kept or session is self._source:
            names, self._names = self._names, []
            with suppress(ReplError):  # it was closed meanwhile, or is broken: there is nothing to give back
                session.give_back(names)
        else:
            session.close()

    def close(self) -> None:
        """Close a session that was kept; one of the caller's stays open, without the context."""
        session, self._session, self._begun = self._session, None, False
        if session is not None and session is not self._source:
            session.close()
        elif session is not None and self._context is not None:
            with suppress(ReplError):
                session.give_back(["context"])

    def _open(self) -> Session:
        if self._session is None:
            self._session = self._source if isinstance(self._source, Session) else self._source()
        session = self._session
        if self._begun:
            return session
        try:
            session.new_run()
            if self.context is not None and self._context is not self.context:
                if self._context is not None:
                    session.give_back(["context"])
                session.set("context", self.context, reserved=True)
                self._context = self.context
                if not self.kept:
                    self._names.append("context")
            session.add_tools(self.functions)
            self._names += self.functions
        except BaseException:
            self.leave()
            if not self.kept:
                self._session = None
            raise
        self._begun, self._seen = True, session.last
        return session
