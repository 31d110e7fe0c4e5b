"""The host's record of what a REPL holds, and of what is lost or rebuilt when the REPL ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rlm_loop.repl.base import CellResult
from rlm_loop.repl.host.calls import CellCalls, HostCall
from rlm_loop.repl.host.driver import Ended
from rlm_loop.repl.journal import Cell, Journal, Rebuilt, names_in
from rlm_loop.repl.rebuild import Rebuild, names_changed, names_in_report
from rlm_loop.repl.results import NO_RESTART, RestartReport, restart_report

_OLD_VALUES = 1 << 30  # bytes on disk of host values that were replaced since, kept to rebuild what was made of them


class SessionState:
    """Tools, variables and names, the journal that leads to them, and the report of a loss that is still to be told.

    With `rebuilds`, names are expected back after a loss: the journal has the cells that make them.
    """

    def __init__(self, rebuilds: bool) -> None:
        self.rebuilds = rebuilds
        self.tools: dict[str, Callable[..., Any]] = {}
        self.variables: dict[str, dict[str, Any]] = {}
        """The frames that bind the host's variables."""
        self.names: tuple[str, ...] = ()
        """Public names in the namespace, tools not included."""
        self.kept: frozenset[str] = frozenset()
        """Names that a fresh REPL has once it was set up."""
        self.journal = Journal()
        self.setup_calls: tuple[HostCall, ...] | None = None
        """The host tools that the setup code called; `None` while it has not run."""
        self.cells = 0
        self.expected: tuple[str, ...] | None = None
        """Names to be rebuilt, where that is still to be done."""
        self.cause = ""
        """Why the REPL ended, where that is still to be told and a rebuild comes first."""
        self._expects = NO_RESTART  # what was said of the names when the REPL was lost
        self.untold = NO_RESTART
        """The report of an earlier restart, which the next cell's result tells."""
        self.rebuilt: Rebuilt | None = None
        self._just_rebuilt = False  # and no cell has ended well since

    # -- what was done in the REPL

    def bind(self, frame: dict[str, Any]) -> None:
        """The host bound a variable; files with values that nothing needs any more are removed."""
        self.variables[frame["name"]] = frame
        before = self.journal.paths()
        self.journal.set(frame)
        self.journal.trim_files(_OLD_VALUES)
        for path in before - self.journal.paths():
            Path(path).unlink(missing_ok=True)

    def add_cell(self, code: str, result: CellResult, ended: Ended, calls: CellCalls) -> None:
        """Put the cell that ended on record."""
        changed = names_changed(ended) if "changed" in ended.report else {}
        cell = Cell(self.cells, code, result.output, result.error, changed, tuple(calls.made))
        cell.seconds = ended.seconds
        self.journal.add(cell)

    # -- how it is lost

    def after(self, ended: Ended) -> RestartReport:
        """Bring the names up to date after a job; what becomes of them where the REPL was replaced."""
        if ended.how == "done":
            self._just_rebuilt = False
            if "names" in ended.report:
                self.names = names_in_report(ended, self.names)
            return NO_RESTART
        if self._just_rebuilt and ended.by == "worker":
            self.journal.begin()  # the earlier cells leave a process in which the worker cannot go on: not again
        self._expects = self.foreseen()
        return self._expects

    def foreseen(self) -> RestartReport:
        """The names lost and rebuilt if the REPL ended now; setup and the host's variables always come back."""
        names = self.names if self.expected is None else self.expected
        own = [n for n in names if n not in self.kept and n not in self.variables]
        if not self.rebuilds:
            return RestartReport(tuple(own))
        last = names_in(e for e in self.journal.plan().events if isinstance(e, Cell))
        again = tuple(n for n in own if n in last and last[n].repeatable)
        return RestartReport(tuple(n for n in own if n not in again), again)

    def died_unseen(self, cause: str, report: RestartReport) -> None:
        """The REPL ended while no cell ran: the next one is to tell."""
        if self.rebuilds:
            self.cause = cause
        else:
            lost = tuple(dict.fromkeys(self.untold.lost + report.lost))
            self.untold = restart_report(cause, RestartReport(lost), None)
            self.names = ()

    # -- how it comes back

    def begin(self) -> Mapping[str, Mapping[str, Any]]:
        """A fresh REPL, which holds nothing: the variables that it is to have before its setup code."""
        if not self.rebuilds and self.expected is None:
            self.journal.begin()
        plan = self.journal.plan()
        if plan.events and self.expected is None:
            self.expected = self.names
        self.names = ()
        return plan.first

    def nothing_to_rebuild(self) -> None:
        """The REPL is ready: report the restart, if there was one."""
        if self.cause:
            self.untold, self.cause = restart_report(self.cause, NO_RESTART, None), ""

    def came_back(self, again: Rebuild, expected: tuple[str, ...]) -> None:
        for cell in again.out:
            cell.gone = True
        self.rebuilt, self.names = again.outcome(expected)
        self.expected, self._just_rebuilt = None, True
        report = restart_report(self.cause, self._expects, self.rebuilt)
        self.untold = RestartReport(self.untold.lost + report.lost, note=report.note or self.untold.note)
        self.cause, self._expects = "", NO_RESTART
