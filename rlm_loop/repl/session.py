"""`PythonREPL`: a persistent Python namespace in a process of its own, seen from the host."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_loop.repl.base import CellResult, EvaluationFailed, ReplError, SetupFailed
from rlm_loop.repl.belongings import Belongings, check_inside, working_folder, write_files
from rlm_loop.repl.calls import inside
from rlm_loop.repl.driver import Driver, Ended, worker_starter
from rlm_loop.repl.launch import Launcher, default_python, plain
from rlm_loop.repl.names import check_names, tools_frame
from rlm_loop.repl.results import cell_result, given, restarted
from rlm_loop.repl.transfer import set_frame

DESCRIPTION = (
    "Run Python code in a persistent session. Variables stay between calls. Returns what the code printed, "
    "or the value of its last expression."
)


@dataclass(frozen=True)
class ReplTool:
    """The REPL as one tool of a function-calling loop."""

    run: Callable[[str], str]
    name: str = "python"
    description: str = DESCRIPTION


class PythonREPL:
    """A `Session` whose cells run in a child process: it can be interrupted, killed and replaced.

    It starts at first use and ends with `close`, with the `with` block, with the host, or when collected.

    - `cwd`: working folder of the cells; default a private one, removed at the end.  `files` are written there.
    - `setup`: code run before the first cell, and again after a restart; an error in it raises `SetupFailed`.
    - `timeout`: seconds of a cell's own time, host tools excluded; `grace`: seconds that an interrupted cell
      has to stop before it is killed.  `run` returns within their sum plus half a second.
    - `output_cap`: characters of a cell's output that are kept, head and tail.
    - `python`: the interpreter of the cells; `launcher`: how it is started; `clock`: a clock in seconds.

    It protects the host from crashes, endless loops and a polluted namespace.  It is no sandbox: cells may read
    and write what the user may.
    """

    name = "python"
    description = DESCRIPTION

    def __init__(
        self,
        *,
        cwd: Path | str | None = None,
        files: Mapping[str, str | bytes] | None = None,
        setup: str = "",
        timeout: float = 60.0,
        grace: float = 2.0,
        output_cap: int = 65_536,
        python: str | None = None,
        launcher: Launcher = plain,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not timeout > 0 or not grace >= 0 or output_cap < 1:
            raise ValueError("timeout and output_cap must be positive, grace must not be negative")
        self.timeout, self.grace, self.output_cap = timeout, grace, output_cap
        self._setup = setup
        self._cwd, self._files = cwd, dict(files or {})
        for name in self._files:
            check_inside(name)
        self._python, self._launcher, self._clock = python or default_python(), launcher, clock
        self._owned = Belongings()
        self._finalizer = weakref.finalize(self, Belongings.release, self._owned, os.getpid())
        self._turns = threading.RLock()
        self._variables: dict[str, dict[str, Any]] = {}
        self._tools: dict[str, Callable[..., Any]] = {}
        self._unready: list[tuple[int, str]] = []
        self._names: tuple[str, ...] = ()
        self._kept: frozenset[str] = frozenset()
        self._missing: tuple[str, tuple[str, ...]] = ("", ())
        self._cells = 0
        self._closed = False
        self.last: CellResult | None = None
        """The result of the latest cell, also where `run` raised."""

    # -- the session protocol

    def run(self, code: str, *, timeout: float | None = None) -> CellResult:
        """Run one cell.  What the cell does is in the result; `timeout` overrides the session's, in seconds.

        Raises what a host tool raised to end the run (a `BudgetSpent`, or anything but an `Exception`),
        `KeyboardInterrupt` after Ctrl-C (the cell is stopped, the session stays usable), and `ReplError`.
        """
        limit = self.timeout if timeout is None else timeout
        with self._turn() as driver:
            self._cells += 1
            frame = {"t": "exec", "code": code, "file": f"<cell {self._cells}>"}
            earlier, self._missing = self._missing, ("", ())
            ended, spent = self._serve(driver, frame, limit)
            lost = self._account(driver, ended)
            self.last = cell_result(ended, lost, limit, self.output_cap, earlier)
            if spent is not None:
                raise spent
            return self.last

    def set(self, name: str, value: Any, *, reserved: bool = False) -> None:
        """Bind a variable: an exact copy, of any size.  A `reserved` one is restored after a cell that rebinds it.

        It comes back after a restart as it was set.  Raises `TypeError` for what cannot be copied.
        """
        check_names([name])
        if name in self._tools:
            raise ValueError(f"{name!r} is the name of a tool; choose another name for the variable")
        with self._turn(start=False) as driver:
            old = self._variables.get(name, {}).get("path")
            frame = {**set_frame(name, value, self._owned.new_path()), "reserved": reserved}
            if driver.worker is not None:
                self._tell(driver, frame, f"cannot set {name!r}")
            self._variables[name] = frame
            if old is not None:
                Path(old).unlink(missing_ok=True)

    def get(self, expression: str) -> Any:
        """The value of an expression: equal to the one in the REPL where it can cross, else its `repr`.

        Raises `EvaluationFailed` where evaluating it fails.
        """
        with self._turn() as driver:
            ended, spent = self._serve(driver, {"t": "eval", "code": expression}, self.timeout)
            lost = self._account(driver, ended)
            if spent is not None:
                raise spent
            if ended.how != "done" or ended.stopped or "error" in ended.report:
                failed = cell_result(ended, lost, self.timeout, self.output_cap)
                raise EvaluationFailed(f"{expression!r}: {failed.message}")
            return given(ended.report).value

    def add_tools(self, tools: Mapping[str, Callable[..., Any]]) -> None:
        """Make host functions callable from cells by name; a name given again is replaced.

        A call runs in a thread of the host.  What it raises arrives in the cell as a `RuntimeError`, except that a
        `BudgetSpent` or anything but an `Exception` ends the cell and is raised by `run`.
        """
        check_names(tools, taken=self._variables)
        with self._turn(start=False) as driver:
            merged = {**self._tools, **tools}
            if driver.worker is not None:
                self._tell(driver, tools_frame(merged), "cannot add tools")
            self._tools = merged

    def new_run(self) -> None:
        """Forget an answer left by an earlier run; variables stay."""
        with self._turn(start=False) as driver:
            if driver.worker is not None:
                self._tell(driver, {"t": "new_run"}, "cannot begin a new run")

    def close(self) -> None:
        """End the process and all that it started, and remove the private folder.  May be called again."""
        self._closed = True
        worker = self._owned.driver.worker if self._owned.driver is not None else None
        if worker is not None and not self._turns.acquire(blocking=False):
            worker.control("quit")  # a cell runs in another thread: it ends as died
            self._turns.acquire()
        elif worker is None:
            self._turns.acquire()
        try:
            self._finalizer()
        finally:
            self._turns.release()

    # -- beyond the protocol

    def start(self) -> None:
        """Start now instead of at first use; raises `SetupFailed` or `ReplError`."""
        with self._turn():
            pass

    @property
    def variables(self) -> tuple[str, ...]:
        """Public names in the namespace after the latest cell, tools not included."""
        return self._names

    @property
    def cwd(self) -> Path:
        """The working folder of the cells."""
        return self._driver_and_folder()[1]

    def as_tool(self) -> ReplTool:
        """This session as a tool: `name`, `description`, and `run(input_data)` which returns text."""

        def run(input_data: str) -> str:
            result = self.run(input_data)
            stopped = result.error not in (None, "runtime")
            return "\n".join(filter(None, [result.output, result.message if stopped else ""]))

        return ReplTool(run)

    def __enter__(self) -> PythonREPL:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- how

    @contextlib.contextmanager
    def _turn(self, start: bool = True) -> Generator[Driver]:
        """One thread at a time; with `start`, a worker that is set up."""
        if id(self) in inside.get():
            raise ReplError("a tool cannot use the REPL that is waiting for it; give the tool a session of its own")
        with self._turns:
            if self._closed:
                raise ReplError("this REPL is closed; open a new one")
            driver = self._driver_and_folder()[0]
            if cause := driver.died_meanwhile():
                self._note_missing(cause, self._lost())
            if start or driver.worker is not None:
                self._make_ready(driver)
            yield driver

    def _driver_and_folder(self) -> tuple[Driver, Path]:
        owned = self._owned
        if owned.driver is None or owned.cwd is None:
            owned.cwd = working_folder(self._cwd, owned.home)
            write_files(self._files, owned.cwd)
            options = {"cap": self.output_cap, "path": [str(owned.cwd)], "home": str(owned.home())}
            starter = worker_starter(self._launcher, self._python, options, owned.cwd, owned.home() / "worker.log")
            owned.driver = Driver(starter, self._clock, self.grace)
        return owned.driver, owned.cwd

    def _make_ready(self, driver: Driver) -> None:
        """Bring a fresh REPL to where the first cell finds it: tools, variables, setup."""
        try:
            driver.ensure()
            if driver.fresh:
                self._give_beginning(driver)
            self._await_beginning(driver)
        except BaseException:
            driver.drop()
            raise

    def _await_beginning(self, driver: Driver) -> None:
        while self._unready:
            job, what = self._unready[0]
            ended = driver.wait(job, self.timeout, driver.calls(self._tools), session=id(self))
            if ended.how == "done":
                self._names = _names_in(ended, self._names)
            if ended.how != "done" or ended.stopped or "error" in ended.report:
                reason = cell_result(ended, (), self.timeout, self.output_cap)
                if what == "setup":
                    raise SetupFailed(f"the setup code failed: {reason.message}\n{reason.output}".rstrip())
                raise ReplError(f"cannot set {what!r} in the REPL: {reason.message}")
            self._unready.pop(0)
            if not self._unready:
                self._kept = frozenset(self._names)

    def _give_beginning(self, driver: Driver) -> None:
        """Send everything without waiting for it, so that a call which ended in a restart returns in time."""
        driver.fresh = False
        self._names, self._unready = (), []
        self._unready.append((driver.send(tools_frame(self._tools), driver.number()), "tools"))
        for name, frame in self._variables.items():
            self._unready.append((driver.send(frame, driver.number()), name))
        frame = {"t": "exec", "code": self._setup, "file": "<setup>"}
        self._unready.append((driver.send(frame, driver.number()), "setup"))

    def _serve(self, driver: Driver, frame: Mapping[str, Any], limit: float) -> tuple[Ended, BaseException | None]:
        """Run a job; how it ended, and what a host tool raised to end it."""
        job, calls = driver.number(), driver.calls(self._tools)
        try:
            driver.send(frame, job)
            ended = driver.wait(job, limit, calls, session=id(self))
            return ended, calls.ended
        except KeyboardInterrupt as interrupt:
            return self._stop(driver, job, interrupt), interrupt
        except BaseException:
            driver.drop()
            raise

    def _stop(self, driver: Driver, job: int, interrupt: BaseException) -> Ended:
        """Ctrl-C: stop the cell and keep the session; a second Ctrl-C kills the worker."""
        try:
            calls = driver.calls({})
            calls.close()
            ping = driver.send(
                {"t": "ping"}, driver.number()
            )  # answered after the job, also if the job never got there
            return driver.wait(job, 0.0, calls, session=id(self), stopped="interrupted", ping=ping)
        except BaseException:
            driver.drop()
            raise

    def _account(self, driver: Driver, ended: Ended) -> tuple[str, ...]:
        """Keep the list of names up to date; the names that are lost where the REPL was replaced."""
        if ended.how == "done":
            self._names = _names_in(ended, self._names)
            return ()
        lost = self._lost()
        if not self._closed and driver.worker is not None and driver.fresh:
            try:
                self._give_beginning(driver)
            except BaseException:
                driver.drop()
                raise
        return lost

    def _lost(self) -> tuple[str, ...]:
        return tuple(n for n in self._names if n not in self._kept and n not in self._variables)

    def _note_missing(self, cause: str, lost: tuple[str, ...]) -> None:
        self._missing = (cause, tuple(dict.fromkeys(self._missing[1] + lost)))
        self._names = ()

    def _tell(self, driver: Driver, frame: Mapping[str, Any], what: str) -> None:
        """A job that has to succeed; `what` begins the message where it does not."""
        ended, spent = self._serve(driver, frame, self.timeout)
        lost = self._account(driver, ended)
        if lost:
            self._note_missing(ended.cause, lost)
        if spent is not None:
            raise spent
        if ended.how != "done" or ended.stopped:
            raise ReplError(f"{what}: {restarted(ended, self.timeout, lost)}")
        if "error" in ended.report:
            raise TypeError(f"{what} in the REPL: {cell_result(ended, (), self.timeout, self.output_cap).message}")


def _names_in(ended: Ended, before: tuple[str, ...]) -> tuple[str, ...]:
    names = ended.report.get("names")
    if not isinstance(names, list):
        return before
    return tuple(n for n in names if isinstance(n, str))  # pyright: ignore[reportUnknownVariableType]
