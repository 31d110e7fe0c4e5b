"""`PythonREPL`: a persistent Python namespace in a process of its own, seen from the host."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.repl.base import CellResult, EvaluationFailed, ReplError, SetupFailed
from rlm_loop.repl.belongings import Belongings, check_inside, working_folder, write_files
from rlm_loop.repl.calls import CellCalls, HostCall, RecordedCalls, inside
from rlm_loop.repl.driver import Driver, Ended, worker_starter
from rlm_loop.repl.isolation import Remembered, launcher_named
from rlm_loop.repl.journal import Cell, Journal, Rebuilt, names_in
from rlm_loop.repl.launch import Launcher, default_python, plain
from rlm_loop.repl.limits import Limits
from rlm_loop.repl.names import check_names, tools_frame
from rlm_loop.repl.process import Starter, program_starter
from rlm_loop.repl.rebuild import Rebuild, names_changed, names_in_report
from rlm_loop.repl.repl_tool import DESCRIPTION, ReplTool, tool_of
from rlm_loop.repl.results import Fate, News, cell_result, given, restart_news, restarted
from rlm_loop.repl.transfer import set_frame

if TYPE_CHECKING:
    from rlm_loop.repl.zygote import Zygote

_OLD_VALUES = 1 << 30  # bytes on disk of host values that were replaced since, kept to rebuild what was made of them

_WORKER_FAILED = "exit status 70"  # what the worker's own code ends with where it cannot go on


class PythonREPL:
    """A `Session` whose cells run in a child process: it can be interrupted, killed and replaced.

    It starts at first use and ends with `close`, with the `with` block, with the host, or when collected.

    - `cwd`: working folder of the cells; default a private one, removed at the end.  `files` are written there.
    - `setup`: code run before the first cell, and again after a restart; an error in it raises `SetupFailed`.
    - `timeout`: seconds of a cell's own time, host tools excluded; `grace`: seconds that an interrupted cell
      has to stop before it is killed.  `run` returns within their sum plus half a second.
    - `output_cap`: characters of a cell's output that are kept, head and tail.
    - `python`: the interpreter of the cells; `clock`: a clock in seconds.
    - `launcher`: how it is started and isolated: `plain`, `hardened`, `sandbox`, `auto` (the strongest that works
      here), or a launcher; `limits`: what the cells may take of the machine.  See `docs/isolation.md`.
    - `zygote`: fork the process from this one, in milliseconds, instead of starting Python (then `python` and
      `launcher` are the zygote's).
    - `rebuild`: after a kill or crash, get the variables back at the next use, by running the earlier cells again
      with the recorded results of their host tools.  That takes at most the time limit of the call that needs
      them, besides its own; cells that were stopped are never run again.  What cells did elsewhere (files,
      network) happens again, too: switch it off where that matters, and all variables are lost.

    It protects the host from crashes, endless loops and a polluted namespace.  With the `plain` launcher it is no
    sandbox: cells may read and write what the user may.
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
        launcher: Launcher | str = "plain",
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
        zygote: Zygote | None = None,
        rebuild: bool = True,
    ) -> None:
        if not timeout > 0 or not grace >= 0 or output_cap < 1:
            raise ValueError("timeout and output_cap must be positive, grace must not be negative")
        if zygote is not None and launcher not in ("plain", plain):
            raise ValueError("what a zygote forks is not isolated: leave out the launcher, or the zygote")
        self.timeout, self.grace, self.output_cap = timeout, grace, output_cap
        self._setup = setup
        self._cwd, self._files = cwd, dict(files or {})
        for name in self._files:
            check_inside(name)
        self._python, self._clock = python or default_python(), clock
        self._launcher, self._limits = Remembered(launcher_named(launcher)), limits or Limits()
        self._zygote, self._rebuilds = zygote, rebuild
        self._owned = Belongings()
        self._finalizer = weakref.finalize(self, Belongings.release, self._owned, os.getpid())
        self._turns = threading.RLock()
        self._variables: dict[str, dict[str, Any]] = {}
        self._tools: dict[str, Callable[..., Any]] = {}
        self._unready: list[tuple[int, str]] = []
        self._names: tuple[str, ...] = ()
        self._kept: frozenset[str] = frozenset()
        self._journal = Journal()
        self._setup_calls: tuple[HostCall, ...] | None = None
        self._expected: tuple[str, ...] | None = None  # names to be rebuilt, where that is still to be done
        self._cause, self._fate, self._news = "", Fate(), News()
        self._just_rebuilt = False  # and no cell has ended well since
        self._cells = 0
        self._closed = False
        self.last: CellResult | None = None
        """The result of the latest cell, also where `run` raised."""
        self.rebuilt: Rebuilt | None = None
        """How the variables came back after the latest restart; `None` where there was nothing to rebuild."""

    # -- the session protocol

    def run(self, code: str, *, timeout: float | None = None) -> CellResult:
        """Run one cell.  What the cell does is in the result; `timeout` overrides the session's, in seconds.

        Raises what a host tool raised to end the run (a `BudgetSpent`, or anything but an `Exception`),
        `KeyboardInterrupt` after Ctrl-C (the cell is stopped, the session stays usable), and `ReplError`.
        """
        limit = self.timeout if timeout is None else timeout
        with self._turn(limit) as driver:
            self._cells += 1
            frame = {"t": "exec", "code": code, "file": f"<cell {self._cells}>"}
            news, self._news = self._news, News()
            ended, spent, calls = self._serve(driver, frame, limit)
            fate = self._account(driver, ended)
            self.last = own = cell_result(ended, fate, limit, self.output_cap)
            if news.note:
                self.last = cell_result(ended, fate, limit, self.output_cap, news)
            cell = Cell(self._cells, code, own.output, own.error, names_changed(ended), tuple(calls.made))
            cell.seconds, cell.names = ended.seconds, self._names if ended.how == "done" else None
            self._journal.add(cell)
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
            frame = {**set_frame(name, value, self._owned.new_path()), "reserved": reserved}
            if driver.worker is not None:
                self._tell(driver, frame, f"cannot set {name!r}")
            self._variables[name] = frame
            before = self._journal.paths()
            self._journal.set(frame)
            self._journal.trim_files(_OLD_VALUES)
            for path in before - self._journal.paths():
                Path(path).unlink(missing_ok=True)

    def get(self, expression: str) -> Any:
        """The value of an expression: equal to the one in the REPL where it can cross, else its `repr`.

        Raises `EvaluationFailed` where evaluating it fails.
        """
        with self._turn() as driver:
            ended, spent, _ = self._serve(driver, {"t": "eval", "code": expression}, self.timeout)
            fate = self._account(driver, ended)
            if spent is not None:
                raise spent
            if ended.how != "done" or ended.stopped or "error" in ended.report:
                failed = cell_result(ended, fate, self.timeout, self.output_cap)
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
            self._journal.new_run()

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
    def journal(self) -> tuple[Cell, ...]:
        """The cells that ran, oldest first, with what they printed, changed and asked of the host."""
        return self._journal.cells

    def at(self, step: int, *, cwd: Path | str | None = None) -> PythonREPL:
        """A new session in the state after cell `step` (0: before the first), with this one's settings and tools.

        The cells up to it are run again with the recorded results of their host tools; `rebuilt` says what differed.
        `cwd` is the new session's working folder; default: that given for this session, else a private one with
        the `files` of the beginning.  Raises `ValueError` where there is no such cell any more, or yet.
        """
        with self._alone():
            if not 0 <= step <= self._cells or 0 < step <= self._journal.forgotten:
                first = self._journal.forgotten + 1
                raise ValueError(f"there is no cell {step} to go back to; there are {first} to {self._cells}")
            other = self._another(self._cwd if cwd is None else cwd)
            other._begin_at(self._journal.upto(step), step, self._tools, self._setup_calls)
        try:
            with other._turn(float("inf")):
                return other
        except BaseException:
            other.close()
            raise

    def to_notebook(self, path: Path | str) -> Path:
        """Write what ran as a Jupyter notebook that runs without this package, and return its path.

        Variables of the host are loaded in its first cells; host tools give their recorded results.  Large values
        go into a folder beside it.
        """
        from rlm_loop.repl.notebook import write_notebook

        with self._alone():
            return write_notebook(Path(path), self._journal, self._setup, self._setup_calls or (), self._files)

    @property
    def cwd(self) -> Path:
        """The working folder of the cells."""
        return self._driver_and_folder()[1]

    @property
    def isolation(self) -> str:
        """The isolation that is in use (`plain`, `sandbox` ...); with `auto` it is known once the session started."""
        return "plain" if self._zygote is not None else self._launcher.kind

    def as_tool(self) -> ReplTool:
        """This session as a tool: `name`, `description`, and `run(input_data)` which returns text."""
        return tool_of(self)

    def __enter__(self) -> PythonREPL:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- how

    @contextlib.contextmanager
    def _turn(self, seconds: float | None = None, *, start: bool = True) -> Generator[Driver]:
        """One thread at a time; with `start`, a worker that is set up.  Rebuilding takes at most `seconds`."""
        with self._alone():
            driver = self._driver_and_folder()[0]
            if cause := driver.died_meanwhile():
                self._died_unseen(cause, self._foreseen())
            if start or driver.worker is not None:
                self._make_ready(driver, self.timeout if seconds is None else seconds)
            yield driver

    @contextlib.contextmanager
    def _alone(self) -> Generator[None]:
        """One thread at a time, and only while the session is open."""
        if id(self) in inside.get():
            raise ReplError("a tool cannot use the REPL that is waiting for it; give the tool a session of its own")
        with self._turns:
            if self._closed:
                raise ReplError("this REPL is closed; open a new one")
            yield

    def _driver_and_folder(self) -> tuple[Driver, Path]:
        owned = self._owned
        if owned.driver is None or owned.cwd is None:
            owned.cwd = working_folder(self._cwd, owned.home)
            write_files(self._files, owned.cwd)
            options: dict[str, Any] = {"cap": self.output_cap, "path": [str(owned.cwd)], "home": str(owned.home())}
            options["limits"] = self._limits.as_options()
            starter = worker_starter(self._starter(), options, owned.cwd, owned.home() / "worker.log")
            owned.driver = Driver(starter, self._clock, self.grace)
        return owned.driver, owned.cwd

    def _another(self, cwd: Path | str | None) -> PythonREPL:
        """A new session with this one's settings."""
        return PythonREPL(
            cwd=cwd,
            files=self._files,
            setup=self._setup,
            timeout=self.timeout,
            grace=self.grace,
            output_cap=self.output_cap,
            python=self._python,
            launcher=self._launcher.launcher,
            limits=self._limits,
            clock=self._clock,
            zygote=self._zygote,
            rebuild=self._rebuilds,
        )

    def _starter(self) -> Starter:
        """What starts the process in which cells run."""
        return program_starter(self._launcher, self._python) if self._zygote is None else self._zygote.fork

    def _make_ready(self, driver: Driver, seconds: float) -> None:
        """Bring a fresh REPL to where the next cell must find it: tools, variables, setup, earlier cells."""
        try:
            driver.ensure()
            if driver.fresh:
                self._give_beginning(driver)
            self._await_beginning(driver)
            if self._expected is not None:
                self._run_again(driver, seconds, self._expected)
            elif self._cause:
                self._news, self._cause = restart_news(self._cause, Fate(), None), ""
        except BaseException:
            driver.drop()
            raise

    def _await_beginning(self, driver: Driver) -> None:
        while self._unready:
            job, what = self._unready[0]
            calls = driver.calls(self._tools)
            if what == "setup" and self._setup_calls is not None:
                calls = RecordedCalls(calls, self._setup_calls, live=True)
            ended = driver.wait(job, self.timeout, calls, session=id(self))
            if ended.how == "done":
                self._names = names_in_report(ended, self._names)
            if ended.how != "done" or ended.stopped or "error" in ended.report:
                reason = cell_result(ended, Fate(), self.timeout, self.output_cap)
                if what == "setup":
                    raise SetupFailed(f"the setup code failed: {reason.message}\n{reason.output}".rstrip())
                raise ReplError(f"cannot set {what!r} in the REPL: {reason.message}")
            self._unready.pop(0)
            if what == "setup" and self._setup_calls is None:
                self._setup_calls = tuple(calls.made)
            if not self._unready:
                self._kept = frozenset(self._names)

    def _give_beginning(self, driver: Driver) -> None:
        """Send everything without waiting for it, so that a call which ended in a restart returns in time."""
        driver.fresh = False
        if not self._rebuilds and self._expected is None:
            self._journal.begin()
        plan = self._journal.plan()
        if plan.events and self._expected is None:
            self._expected = self._names
        self._names, self._unready = (), []
        self._unready.append((driver.send(tools_frame(self._tools), driver.number()), "tools"))
        for name, frame in plan.first.items():
            self._unready.append((driver.send(frame, driver.number()), name))
        frame = {"t": "exec", "code": self._setup, "file": "<setup>"}
        self._unready.append((driver.send(frame, driver.number()), "setup"))

    def _run_again(self, driver: Driver, seconds: float, expected: tuple[str, ...]) -> None:
        """Rebuild the variables from the journal."""
        given = self._kept | set(self._variables)
        again = Rebuild(self._journal.plan().events, seconds, self.output_cap, self._clock, id(self), given)
        while not again.attempt(driver, self._names, expected):
            self._give_beginning(driver)
            self._await_beginning(driver)
        for cell in again.out:
            cell.gone_at = self._cells
        self.rebuilt, self._names = again.outcome(expected)
        self._expected, self._just_rebuilt = None, True
        news = restart_news(self._cause, self._fate, self.rebuilt)
        self._news = News(news.note or self._news.note, self._news.lost + news.lost)
        self._cause, self._fate = "", Fate()

    def _begin_at(
        self,
        journal: Journal,
        step: int,
        tools: Mapping[str, Callable[..., Any]],
        setup_calls: tuple[HostCall, ...] | None,
    ) -> None:
        """Take over another session's journal, so that the start leads to its last cell."""
        self._journal, self._cells, self._tools = journal.copied_to(self._owned.new_path), step, dict(tools)
        self._variables = journal.variables()
        self._setup_calls, self._expected = setup_calls, journal.names()

    def _serve(
        self, driver: Driver, frame: Mapping[str, Any], limit: float
    ) -> tuple[Ended, BaseException | None, CellCalls]:
        """Run a job; how it ended, what a host tool raised to end it, and its calls."""
        job, calls = driver.number(), driver.calls(self._tools)
        try:
            driver.send(frame, job)
            ended = driver.wait(job, limit, calls, session=id(self))
            return ended, calls.ended, calls
        except KeyboardInterrupt as interrupt:
            return self._stop(driver, job, interrupt), interrupt, calls
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

    def _account(self, driver: Driver, ended: Ended) -> Fate:
        """Keep the list of names up to date; what becomes of the names where the REPL was replaced."""
        if ended.how == "done":
            self._names, self._just_rebuilt = names_in_report(ended, self._names), False
            return Fate()
        if self._just_rebuilt and _WORKER_FAILED in ended.cause:
            self._journal.begin()  # the earlier cells leave a process in which the worker cannot go on: not again
        fate = self._fate = self._foreseen()
        if not self._closed and driver.worker is not None and driver.fresh:
            try:
                self._give_beginning(driver)
            except BaseException:
                driver.drop()
                raise
        return fate

    def _foreseen(self) -> Fate:
        """What will become of the names if the REPL is gone now: setup and the host's variables always come back."""
        names = self._names if self._expected is None else self._expected
        own = [n for n in names if n not in self._kept and n not in self._variables]
        if not self._rebuilds:
            return Fate(tuple(own))
        last = names_in(e for e in self._journal.plan().events if isinstance(e, Cell))
        again = tuple(n for n in own if n in last and last[n].repeatable)
        return Fate(tuple(n for n in own if n not in again), again)

    def _died_unseen(self, cause: str, fate: Fate) -> None:
        """The REPL ended while no cell ran: the next one is to tell."""
        if self._rebuilds:
            self._cause = cause
        else:
            self._news = restart_news(cause, Fate(tuple(dict.fromkeys(self._news.lost + fate.lost))), None)
            self._names = ()

    def _tell(self, driver: Driver, frame: Mapping[str, Any], what: str) -> None:
        """A job that has to succeed; `what` begins the message where it does not."""
        ended, spent, _ = self._serve(driver, frame, self.timeout)
        fate = self._account(driver, ended)
        if ended.how != "done":
            self._died_unseen(ended.cause, fate)
        if spent is not None:
            raise spent
        if ended.how != "done" or ended.stopped:
            raise ReplError(f"{what}: {restarted(ended, self.timeout, fate)}")
        if "error" in ended.report:
            raise TypeError(f"{what} in the REPL: {cell_result(ended, Fate(), self.timeout, self.output_cap).message}")
