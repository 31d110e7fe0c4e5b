"""The life of a session's REPL: started at first use, set up, given jobs, replaced where it is lost, ended."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Generic, TypeVar

from rlm_loop.repl.base import ReplError, SetupFailed
from rlm_loop.repl.host.belongings import Belongings, working_folder, write_files
from rlm_loop.repl.host.calls import CellCalls, RecordedCalls, inside
from rlm_loop.repl.host.driver import Driver, Ended, worker_starter
from rlm_loop.repl.host.holdings import Holdings
from rlm_loop.repl.host.process import Starter
from rlm_loop.repl.host.shielded import shielded
from rlm_loop.repl.names import tools_frame
from rlm_loop.repl.rebuild import Rebuild, names_in_report
from rlm_loop.repl.results import Fate, cell_result, restarted
from rlm_loop.repl.settings import Settings

T = TypeVar("T")


class Life:
    """One session's REPL, from its start to its end, whatever happens to the process.

    `starter` makes what starts the process; it is asked once.  `until_ready` waits for a process that was replaced,
    where its start is not to count as the next cell's time.  Neither may hold the session, or it would never be
    collected: the REPL ends with `end`, with the host, or when the life is collected.
    """

    def __init__(
        self,
        settings: Settings,
        starter: Callable[[Belongings], Starter],
        until_ready: Callable[[], None] = lambda: None,
    ) -> None:
        self.settings, self._starter, self._until_ready = settings, starter, until_ready
        self.held = Holdings(settings.rebuild)
        self.owned = Belongings()
        self.closed = False
        self._finalizer = weakref.finalize(self, Belongings.release, self.owned, os.getpid())
        self.turns = threading.RLock()
        self._unready: list[tuple[int, str]] = []  # jobs of the beginning that were sent and not yet waited for

    # -- whose turn it is

    def turn(self, seconds: float | None = None, *, start: bool = True) -> AbstractContextManager[Driver]:
        """One thread at a time; with `start`, a worker that is set up.  Rebuilding takes at most `seconds`."""
        return _Turn(self, lambda: self._driver_now(seconds, start))

    def alone(self) -> AbstractContextManager[None]:
        """One thread at a time, and only while the session is open."""
        return _Turn(self, lambda: None)

    def _driver_now(self, seconds: float | None, start: bool) -> Driver:
        driver = self.owned.driver or self.place()[0]
        if cause := driver.died_meanwhile():
            self.held.died_unseen(cause, self.held.foreseen())
        if driver.settled and not self._unready and self.held.settled:
            self._until_ready()
        elif start or driver.worker is not None:
            self._make_ready(driver, self.settings.timeout if seconds is None else seconds)
        return driver

    def place(self) -> tuple[Driver, Path]:
        """The driver and the working folder, made when first asked for."""
        owned, settings = self.owned, self.settings
        if owned.driver is None or owned.cwd is None:
            owned.cwd = working_folder(settings.cwd, owned.home)
            write_files(settings.files, owned.cwd)
            options = {**settings.worker_options(owned.cwd, owned.home()), "read": owned.lent.paths}
            starter = worker_starter(self._starter(owned), options, owned.cwd, owned.home() / "worker.log")
            owned.driver = Driver(starter, settings.clock, settings.grace)
        return owned.driver, owned.cwd

    def end(self) -> None:
        """End the process and all that it started, and remove the private folder.  May be called again."""
        self.closed = True
        worker = self.owned.driver.worker if self.owned.driver is not None else None
        if worker is not None and not self.turns.acquire(blocking=False):
            worker.control("quit")  # a cell runs in another thread: it ends as died
            self.turns.acquire()
        elif worker is None:
            self.turns.acquire()
        try:
            with shielded():
                self._finalizer()
        finally:
            self.turns.release()

    # -- jobs

    def serve(
        self, driver: Driver, frame: Mapping[str, Any], limit: float, grace: float | None = None
    ) -> tuple[Ended, BaseException | None, CellCalls]:
        """Run a job; how it ended, what a host tool raised to end it, and its calls."""
        job, calls = driver.number(), driver.calls(self.held.tools)
        try:
            driver.send(frame, job)
            ended = driver.wait(job, limit, calls, session=id(self), grace=grace)
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
            # answered after the job, also if the job never got there
            ping = driver.send({"t": "ping"}, driver.number())
            return driver.wait(job, 0.0, calls, session=id(self), stopped="interrupted", ping=ping)
        except BaseException:
            driver.drop()
            raise

    def account(self, driver: Driver, ended: Ended) -> Fate:
        """What becomes of the names after a job; where the REPL was replaced, its successor is set up meanwhile."""
        fate = self.held.after(ended)
        if ended.how != "done" and not self.closed and driver.worker is not None and driver.fresh:
            try:
                self._give_beginning(driver)
            except BaseException:
                driver.drop()
                raise
        return fate

    def tell(self, driver: Driver, frame: Mapping[str, Any], what: str) -> None:
        """A job that has to succeed; `what` begins the message where it does not."""
        timeout, cap = self.settings.timeout, self.settings.output_cap
        ended, spent, _ = self.serve(driver, frame, timeout)
        fate = self.account(driver, ended)
        if ended.how != "done":
            self.held.died_unseen(ended.cause, fate)
        if spent is not None:
            raise spent
        if ended.how != "done" or ended.stopped:
            raise ReplError(f"{what}: {restarted(ended, timeout, fate)}")
        if "error" in ended.report:
            raise TypeError(f"{what} in the REPL: {cell_result(ended, Fate(), timeout, cap).message}")

    # -- from a fresh REPL to where the next job must find it

    def _make_ready(self, driver: Driver, seconds: float) -> None:
        """Bring a fresh REPL to where the next cell must find it: tools, variables, setup, earlier cells."""
        if driver.worker is not None:
            self._until_ready()
        try:
            driver.begin()
            if driver.fresh:
                self._give_beginning(driver)
            self._await_beginning(driver)
            if self.held.expected is not None:
                self._run_again(driver, seconds, self.held.expected)
            else:
                self.held.nothing_to_rebuild()
        except BaseException:
            driver.drop()
            raise

    def _give_beginning(self, driver: Driver) -> None:
        """Send everything without waiting for it, so that a call which ended in a restart returns in time."""
        driver.fresh = False
        first = self.held.begin()
        jobs = [("tools", tools_frame(self.held.tools))] if self.held.tools else []
        jobs += [(name, dict(frame)) for name, frame in first.items()]
        if self.settings.setup.strip():
            jobs.append(("setup", {"t": "exec", "code": self.settings.setup, "file": "<setup>"}))
        if not jobs:
            self.held.kept = frozenset()
        self._unready = [(driver.send(frame, driver.number()), what) for what, frame in jobs]

    def _await_beginning(self, driver: Driver) -> None:
        held, timeout, cap = self.held, self.settings.timeout, self.settings.output_cap
        while self._unready:
            job, what = self._unready[0]
            calls = driver.calls(held.tools)
            if what == "setup" and held.setup_calls is not None:
                calls = RecordedCalls(calls, held.setup_calls, live=True)
            ended = driver.wait(job, timeout, calls, session=id(self))
            if ended.how == "done":
                held.names = names_in_report(ended, held.names)
            if ended.how != "done" or ended.stopped or "error" in ended.report:
                reason = cell_result(ended, Fate(), timeout, cap)
                if what == "setup":
                    raise SetupFailed(f"the setup code failed: {reason.message}\n{reason.output}".rstrip())
                raise ReplError(f"cannot set {what!r} in the REPL: {reason.message}")
            self._unready.pop(0)
            if what == "setup" and held.setup_calls is None:
                held.setup_calls = tuple(calls.made)
            if not self._unready:
                held.kept = frozenset(held.names)

    def _run_again(self, driver: Driver, seconds: float, expected: tuple[str, ...]) -> None:
        """Rebuild the variables from the journal."""
        held, settings = self.held, self.settings
        events, given = held.journal.plan().events, held.kept | set(held.variables)
        again = Rebuild(events, seconds, settings.output_cap, settings.clock, id(self), given)
        while not again.attempt(driver, held.names, expected):
            self._give_beginning(driver)
            self._await_beginning(driver)
        held.came_back(again, expected)


class _Turn(Generic[T]):
    """`contextlib.contextmanager` by hand, since every cell passes here."""

    def __init__(self, life: Life, begin: Callable[[], T]) -> None:
        self._life, self._begin = life, begin

    def __enter__(self) -> T:
        life = self._life
        if id(life) in inside.get():
            raise ReplError("a tool cannot use the REPL that is waiting for it; give the tool a session of its own")
        life.turns.acquire()
        try:
            if life.closed:
                raise ReplError("this REPL is closed; open a new one")
            return self._begin()
        except BaseException:
            life.turns.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._life.turns.release()
