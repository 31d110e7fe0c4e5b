"""What `PythonREPL` and `KernelREPL` share: the session protocol over a REPL that is replaced where it is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlm_loop.repl.base import CellResult, EvaluationFailed, Session
from rlm_loop.repl.folder import Listing, changes, listing
from rlm_loop.repl.host.transfer import set_frame
from rlm_loop.repl.host.worker_lifecycle import WorkerLifecycle
from rlm_loop.repl.journal import Cell, Rebuilt
from rlm_loop.repl.names import check_names, tools_frame
from rlm_loop.repl.results import NO_RESTART, cell_result, given


class JournaledSession(Session):
    """A `Session` that remembers what ran and gets its variables back after a loss.

    A subclass says what the REPL is started by, in the `WorkerLifecycle` that it hands over.
    """

    def __init__(self, lifecycle: WorkerLifecycle) -> None:
        self._lifecycle, self._state, self._settings = lifecycle, lifecycle.state, lifecycle.settings
        self.timeout, self.grace = self._settings.timeout, self._settings.grace
        self.output_cap = self._settings.output_cap
        self._files: Listing | str | None = None  # of the working folder at the last look; a text: why none is taken
        self._covered: dict[str, list[Callable[..., Any]]] = {}  # host tools under those of the same names

    # -- the session protocol

    def run(self, code: str, *, timeout: float | None = None, grace: float | None = None) -> CellResult:
        """Run one cell.  What the cell does is in the result; `timeout` overrides the session's, in seconds, and
        `grace` shortens its grace time.

        Raises what a host tool raised to end the run (a `BudgetSpent`, or anything but an `Exception`),
        `KeyboardInterrupt` after Ctrl-C (the cell is stopped, the session stays usable), and `ReplError`.
        """
        limit = self.timeout if timeout is None else timeout
        lifecycle, state = self._lifecycle, self._state
        with lifecycle.turn():
            driver = lifecycle.ready(limit)
            state.cells += 1
            earlier, state.untold = state.untold, NO_RESTART
            frame = {"t": "exec", "code": code, "file": f"<cell {state.cells}>"}
            folder = lifecycle.resources.cwd or Path()
            before = listing(folder) if self._files is None else self._files
            ended, spent, calls = driver.serve(frame, state.tools, limit, grace)
            restart = lifecycle.account(driver, ended)
            self.last = own = cell_result(ended, limit, self.output_cap, restart)
            if earlier.note:
                self.last = cell_result(ended, limit, self.output_cap, restart, earlier)
            after = before if isinstance(before, str) else listing(folder)
            if isinstance(after, str) or after != before:
                self.last = replace(self.last, effects=changes(before, after))
            self._files = after
            state.add_cell(code, own, ended, calls)
            if spent is not None:
                raise spent
            return self.last

    def set(self, name: str, value: Any, *, reserved: bool = False) -> None:
        """Bind a variable: an exact copy, of any size.  A `reserved` one is restored after a cell that rebinds it.

        A `ContextFile` or `ContextFolder` is bound to what is in it, which the cells read where it lies.
        It comes back after a restart as it was set.  Raises `TypeError` for what cannot be copied.
        """
        check_names([name])
        if name in self._state.tools:
            raise ValueError(f"{name!r} is the name of a tool; choose another name for the variable")
        with self._lifecycle.turn():
            driver = self._lifecycle.ready(start=False)
            resources = self._lifecycle.resources
            reach = resources.lent.reach(self.isolation, driver.worker is not None)
            frame = {**set_frame(name, value, resources.new_path(), reach), "reserved": reserved}
            self._lifecycle.tell(frame, f"cannot set {name!r}")
            self._state.bind(frame)

    def get(self, expression: str, *, timeout: float | None = None) -> Any:
        """The value of an expression: equal to the one in the REPL where it can cross, else its `repr`.

        `timeout` overrides the session's, in seconds.  Raises `EvaluationFailed` where evaluating it fails.
        """
        limit = self.timeout if timeout is None else timeout
        with self._lifecycle.turn():
            driver = self._lifecycle.ready()
            ended, spent, _ = driver.serve({"t": "eval", "code": expression}, self._state.tools, limit)
            restart = self._lifecycle.account(driver, ended)
            if spent is not None:
                raise spent
            if ended.how != "done" or ended.stopped or "error" in ended.report:
                failed = cell_result(ended, limit, self.output_cap, restart)
                raise EvaluationFailed(f"{expression!r}: {failed.message}")
            return given(ended.report).value

    def add_tools(self, tools: Mapping[str, Callable[..., Any]]) -> None:
        """Make host functions callable from cells, over variables and tools of the same names.

        A call runs in a thread of the host.  What it raises arrives in the cell as a `RuntimeError`, except that a
        `BudgetSpent` or anything but an `Exception` ends the cell and is raised by `run`.
        """
        check_names(tools, taken=self._state.variables)
        with self._lifecycle.turn():
            before = self._state.tools
            self._lifecycle.tell(tools_frame({**before, **tools}), "cannot add tools")
            self._state.tools = {**before, **tools}
            for name in tools.keys() & before.keys():
                self._covered.setdefault(name, []).append(before[name])

    def remove_tools(self, names: Iterable[str]) -> None:
        """Take the latest host functions of these names away: what they were put over returns."""
        with self._lifecycle.turn():
            gone = self._state.tools.keys() & set(names)
            before = {name: self._covered[name][-1] for name in gone if self._covered.get(name)}
            left = {n: before.get(n, tool) for n, tool in self._state.tools.items() if n not in gone or n in before}
            self._lifecycle.tell(tools_frame(left), "cannot remove tools")
            self._state.tools = left
            for name in before:
                self._covered[name].pop()

    def new_run(self) -> None:
        """Forget an answer left by an earlier run; variables stay."""
        with self._lifecycle.turn():
            self._lifecycle.tell({"t": "new_run"}, "cannot begin a new run")
            self._state.journal.new_run()

    def close(self) -> None:
        """End the process and all that it started, and remove the private folder.  May be called again."""
        self._lifecycle.end()

    # -- beyond the protocol

    def start(self) -> None:
        """Start now instead of at first use; raises `SetupFailed` or `ReplError`."""
        with self._lifecycle.turn():
            self._lifecycle.ready().ensure()

    @property
    def variables(self) -> tuple[str, ...]:
        """Public names in the namespace after the latest cell, tools not included."""
        return self._state.names

    @property
    def rebuilt(self) -> Rebuilt | None:
        """How the variables came back after the latest restart; `None` where there was nothing to rebuild."""
        return self._state.rebuilt

    @property
    def journal(self) -> tuple[Cell, ...]:
        """The cells that ran, oldest first, with what they printed, changed and asked of the host."""
        return self._state.journal.cells

    @property
    def cwd(self) -> Path:
        """The working folder of the cells."""
        return self._lifecycle.place()[1]
