"""The session protocol over a REPL in a process of its own, which is replaced where it is lost."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rlm_loop.repl.base import CellCall, CellResult, EvaluationFailed, ReplError, Session, SetupFailed
from rlm_loop.repl.folder import Listing, changes, listing
from rlm_loop.repl.history import History
from rlm_loop.repl.host.calls import inside
from rlm_loop.repl.host.child import Child
from rlm_loop.repl.host.driver import Driver, Ended
from rlm_loop.repl.host.launch import Launch
from rlm_loop.repl.host.shielded import shielded
from rlm_loop.repl.host.transfer import set_frame
from rlm_loop.repl.names import check_names, tools_frame
from rlm_loop.repl.rebuild import Rebuild, recorded
from rlm_loop.repl.records import CellRecord, PastCalls, Rebuilt
from rlm_loop.repl.resources import Resources
from rlm_loop.repl.results import (
    NO_RESTART,
    RestartReport,
    cell_result,
    given,
    names_changed,
    names_in_report,
    restart_report,
    restarted,
)
from rlm_loop.repl.settings import Settings

_SEE_EVERYTHING = ("plain", "kernel", "restricted", "custom")  # kinds of isolation that hide no file of the user's


class ProcessSession(Session):
    """A `Session` that remembers what ran and gets its variables back after a loss.

    `launch` says how the process is started, given the worker's options; it must not hold the session, or that would
    never be collected.  `kind` is the isolation to expect of it.  The process is started at first use; it ends with
    `close`, with this process, or when the session is collected.
    """

    def __init__(self, settings: Settings, launch: Callable[[Mapping[str, Any]], Launch], kind: str) -> None:
        self.timeout, self.grace, self.output_cap = settings.timeout, settings.grace, settings.output_cap
        self._settings, self._launch, self._kind = settings, launch, kind
        self._resources = Resources()
        self._closed = False
        self._pid = os.getpid()
        self._finalizer = weakref.finalize(self, Resources.release, self._resources, self._pid)
        self._turns = threading.RLock()
        self._files: Listing | str | None = None  # of the working folder at the last look; a text: why none is taken
        self._tools: dict[str, Callable[..., Any]] = {}
        self._covered: dict[str, list[Callable[..., Any]]] = {}  # host tools under those of the same names
        # What the REPL holds
        self._history = History()
        self._variables: set[str] = set()  # of the host
        self._reserved: dict[str, list[bool]] = {}  # of these, each with whether it is over another of the host's
        self._names: tuple[str, ...] = ()
        self._given: frozenset[str] = frozenset()  # names that a fresh REPL has once it was set up
        self._cells = 0
        self._setup_calls: Sequence[CellCall] = ()  # of the setup code, once it has run
        # What is to be done, and to be told, since it was lost
        self._expected: tuple[str, ...] | None = None  # names to be rebuilt
        self._foreseen = NO_RESTART  # what was said of the names when it was lost
        self._cause = ""  # why it was lost, where no cell's result said so and a rebuild comes first
        self._untold = NO_RESTART  # the report of a restart that the next cell's result tells
        self._rebuilt: Rebuilt | None = None

    # -- the session protocol

    def run(self, code: str, *, timeout: float | None = None, grace: float | None = None) -> CellResult:
        limit = self.timeout if timeout is None else timeout
        with self._turn():
            driver = self._ready(limit)
            self._cells += 1
            earlier, self._untold = self._untold, NO_RESTART
            frame = {"t": "exec", "code": code, "file": f"<cell {self._cells}>"}
            folder = self._resources.cwd or Path()
            before = listing(folder) if self._files is None else self._files
            ended, calls = driver.serve(frame, self._tools, limit, grace)
            restart = self._after(ended)
            made = calls.made
            self.last = own = cell_result(ended, limit, self.output_cap, restart, calls=made)
            if earlier.note:
                self.last = cell_result(ended, limit, self.output_cap, restart, earlier, calls=made)
            after = before if isinstance(before, str) else listing(folder)
            if isinstance(after, str) or after != before:
                self.last = replace(self.last, effects=changes(before, after))
            self._files = after
            changed = names_changed(ended) if "changed" in ended.report else {}
            self._history.add(CellRecord(code, tuple(made), own.output, own.error, ended.seconds, changed, self._cells))
            if calls.ended is not None:
                raise calls.ended
            return self.last

    def set(self, name: str, value: Any, *, reserved: bool = False) -> None:
        """Bind a variable: an exact copy, of any size.

        A `ContextFile` is bound to what is in it.  Isolated cells read a copy in the private folder.
        It comes back after a restart as it was set.  Raises `TypeError` for what cannot be copied.
        """
        check_names([name])
        if name in self._tools:
            raise ValueError(f"{name!r} is the name of a tool; choose another name for the variable")
        with self._turn():
            driver = self._ready(start=False)
            in_place = self.isolation in _SEE_EVERYTHING
            frame = {**set_frame(name, value, self._resources.new_path(), in_place), "reserved": reserved}
            self._tell(driver, frame, f"cannot set {name!r}")
            if reserved:
                self._reserved.setdefault(name, []).append(name in self._variables)
            self._variables.add(name)
            self._history.bind(frame)

    def get(self, expression: str, *, timeout: float | None = None) -> Any:
        limit = self.timeout if timeout is None else timeout
        with self._turn():
            ended, calls = self._ready().serve({"t": "eval", "code": expression}, self._tools, limit)
            restart = self._after(ended)
            if calls.ended is not None:
                raise calls.ended
            if ended.how != "done" or ended.stopped or "error" in ended.report:
                failed = cell_result(ended, limit, self.output_cap, restart)
                raise EvaluationFailed(f"{expression!r}: {failed.message}")
            return given(ended.report, ended.report.get("size", 0), limit - ended.seconds).value

    def add_tools(self, tools: Mapping[str, Callable[..., Any]]) -> None:
        check_names(tools, taken=dict.fromkeys(self._variables))
        with self._turn():
            before = self._tools
            self._offer({**before, **tools}, "cannot add tools")
            for name in tools.keys() & before.keys():
                self._covered.setdefault(name, []).append(before[name])

    def give_back(self, names: Iterable[str]) -> None:
        names = set(names)
        with self._turn():
            for name in [n for n in names if self._reserved.get(n)]:
                frame = {"t": "give_back", "name": name}
                self._tell(self._ready(start=False), frame, f"cannot give {name!r} back")
                self._history.give_back(frame)
                if not self._reserved[name].pop():
                    self._variables.discard(name)
            gone = self._tools.keys() & names
            if not gone:
                return
            before = {name: self._covered[name][-1] for name in gone if self._covered.get(name)}
            left = {n: before.get(n, tool) for n, tool in self._tools.items() if n not in gone or n in before}
            self._offer(left, "cannot remove tools")
            for name in before:
                self._covered[name].pop()

    def new_run(self) -> None:
        with self._turn():
            self._tell(self._ready(start=False), {"t": "new_run"}, "cannot begin a new run")
            self._history.new_run()

    def close(self) -> None:
        """End the process and all that it started, and remove the private folder.  May be called again."""
        self._closed = True
        child = self._resources.driver.child if self._resources.driver is not None else None
        if child is not None and not self._turns.acquire(blocking=False):
            child.kill()  # a cell runs in another thread: it ends as died
            self._turns.acquire()
        elif child is None:
            self._turns.acquire()
        try:
            with shielded():
                self._finalizer()
        finally:
            self._turns.release()

    # -- beyond the protocol

    def start(self) -> None:
        """Start now instead of at first use; raises `SetupFailed` or `ReplError`."""
        with self._turn():
            self._ready()

    @property
    def isolation(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The isolation that is in use (`plain`, `sandbox` ...); with `auto` it is known once the session started."""
        driver = self._resources.driver
        return self._kind if driver is None else driver.kind or self._kind

    @property
    def variables(self) -> tuple[str, ...]:
        """Public names in the namespace after the latest cell, tools not included."""
        return self._names

    @property
    def rebuilt(self) -> Rebuilt | None:
        """How the variables came back after the latest restart; `None` where there was nothing to rebuild."""
        return self._rebuilt

    @property
    def records(self) -> tuple[CellRecord, ...]:
        """The cells that a restart would run again, oldest first."""
        return self._history.cells

    @property
    def cwd(self) -> Path:
        """The working folder of the cells."""
        return self._place()[1]

    # -- whose turn it is

    def _turn(self) -> AbstractContextManager[bool]:
        """One thread at a time; not for a tool that the session itself waits for."""
        if id(self) in inside.get():
            raise ReplError("a tool cannot use the REPL that is waiting for it; give the tool a session of its own")
        return self._turns

    def _ready(self, seconds: float | None = None, *, start: bool = True) -> Driver:
        """Return the driver; with `start`, its REPL is set up.  Rebuilding takes at most `seconds`."""
        if self._closed:
            raise ReplError("this REPL is closed; open a new one")
        if os.getpid() != self._pid:
            raise ReplError("this REPL belongs to the process that this one was forked from; open a new one here")
        driver = self._resources.driver or self._place()[0]
        child = driver.child
        if child is not None and child.has_said() and (cause := driver.died_meanwhile()):
            self._lose(rebuilt_again=True)
            self._tell_next(cause)
        to_do = driver.child is None or self._expected is not None or self._cause
        if to_do and (start or driver.child is not None):
            self._make_ready(driver, self.timeout if seconds is None else seconds)
        return driver

    def _place(self) -> tuple[Driver, Path]:
        """Return the driver and the working folder, made when first asked for."""
        resources, settings = self._resources, self._settings
        cwd = resources.folder(settings.cwd, settings.files)
        if resources.driver is None:
            home = resources.home()
            start = partial(_start, self._launch, settings.worker_options(cwd, home), cwd, home, settings.output_cap)
            resources.driver = Driver(start, settings.clock, settings.grace, id(self))
        return resources.driver, cwd

    def _offer(self, tools: dict[str, Callable[..., Any]], what: str) -> None:
        """Let the cells have these tools and no others."""
        driver = self._ready(start=False)
        if driver.child is not None:
            self._tell(driver, tools_frame(tools), what)
        self._tools = tools

    def _tell(self, driver: Driver, frame: Mapping[str, Any], what: str) -> None:
        """Give a job that has to succeed to a REPL that was started; `what` begins the message where it does not."""
        if driver.child is None:
            return
        ended, calls = driver.serve(frame, self._tools, self.timeout)
        report = self._after(ended)
        if ended.how != "done":
            self._tell_next(ended.cause)
        if calls.ended is not None:
            raise calls.ended
        if ended.how != "done" or ended.stopped:
            raise ReplError(f"{what}: {restarted(ended, self.timeout, report)}")
        if "error" in ended.report:
            raise TypeError(f"{what} in the REPL: {cell_result(ended, self.timeout, self.output_cap).message}")

    # -- how it is lost

    def _after(self, ended: Ended) -> RestartReport:
        """Bring the names up to date after a job; return what becomes of them where the REPL was lost."""
        if ended.how == "done":
            if "names" in ended.report:
                self._names = names_in_report(ended, self._names)
            return NO_RESTART
        self._lose(rebuilt_again=ended.how == "died")
        return self._foreseen

    def _lose(self, rebuilt_again: bool) -> None:
        """Note that all is lost, and what will be rebuilt; `rebuilt_again`: the cells themselves may have been why."""
        if rebuilt_again:
            self._history.remove_rerun()
        names = self._names if self._expected is None else self._expected
        own = tuple(n for n in names if n not in self._given and n not in self._variables)
        if self._settings.rebuild:
            self._foreseen = self._history.foreseen(own)
            self._expected = names
        else:
            self._foreseen = RestartReport(own)
            self._history.begin()
        self._names = ()

    def _tell_next(self, cause: str) -> None:
        """Have the next cell's result say that the REPL was lost."""
        if self._settings.rebuild:
            self._cause = cause
        else:
            lost = tuple(dict.fromkeys(self._untold.lost + self._foreseen.lost))
            self._untold = restart_report(cause, RestartReport(lost), None)

    # -- how it comes back

    def _make_ready(self, driver: Driver, seconds: float) -> None:
        """Bring a fresh REPL to where the next cell must find it: tools, variables, setup, earlier cells."""
        if driver.child is None and self._expected is None and self._history.cells:
            self._lose(rebuilt_again=False)  # given up while something was raised
        try:
            self._set_up(driver)
            if self._expected is None:
                return
            expected, history = self._expected, self._history
            given_names = self._given | self._variables
            again = Rebuild(history.plan()[1], seconds, self.output_cap, self._settings.clock, given_names, self._tools)
            while not again.attempt(driver, self._names, expected):
                self._set_up(driver)
            history.remove(again.out)
            for cell in history.cells:
                cell.rerun = True
            self._rebuilt, self._names = again.outcome(expected)
            report = restart_report(self._cause, self._foreseen, self._rebuilt)
            self._untold = RestartReport(self._untold.lost + report.lost, note=report.note or self._untold.note)
            self._expected, self._cause, self._foreseen = None, "", NO_RESTART
        except BaseException:
            driver.drop()
            raise

    def _set_up(self, driver: Driver) -> None:
        """Give a new REPL its tools, the host's variables and the setup code."""
        if driver.child is not None:
            return
        driver.begin()
        self._names = ()
        if self._tools:
            self._first(driver, tools_frame(self._tools), "the tools")
        for frame in self._history.plan()[0]:
            self._first(driver, frame, repr(frame["name"]))
        if self._settings.setup.strip():
            past, frame = PastCalls(self._setup_calls), {"t": "exec", "code": self._settings.setup, "file": "<setup>"}
            made = self._first(driver, frame, "", {n: recorded(n, past, tool) for n, tool in self._tools.items()})
            self._setup_calls = self._setup_calls or made
        self._given = frozenset(self._names)

    def _first(
        self, driver: Driver, frame: Mapping[str, Any], what: str, tools: Mapping[str, Callable[..., Any]] | None = None
    ) -> Sequence[CellCall]:
        """Do one of the first jobs, and return its calls of tools; raises `ReplError` where it fails.

        It is the setup code where it has no name.
        """
        ended, calls = driver.serve(frame, tools or {}, self.timeout)
        if ended.how == "done":
            self._names = names_in_report(ended, self._names)
        if calls.ended is not None:
            raise calls.ended
        if ended.how != "done" or ended.stopped or "error" in ended.report:
            failed = cell_result(ended, self.timeout, self.output_cap)
            if what:
                raise ReplError(f"cannot set {what} in the REPL: {failed.message}")
            raise SetupFailed(f"the setup code failed: {failed.message}\n{failed.output}".rstrip())
        return calls.made


def _start(
    launch: Callable[[Mapping[str, Any]], Launch], options: Mapping[str, Any], cwd: Path, home: Path, cap: int
) -> Child:
    return Child(launch(options), cwd, home, cap)
