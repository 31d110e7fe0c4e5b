"""The life of a session's REPL: started at first use, set up, given jobs, replaced where it is lost, ended."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rlm_loop.repl.base import ReplError, SetupFailed
from rlm_loop.repl.host.calls import inside
from rlm_loop.repl.host.driver import Driver, Ended, worker_starter
from rlm_loop.repl.host.process import Starter
from rlm_loop.repl.host.session_resources import SessionResources
from rlm_loop.repl.host.session_state import SessionState
from rlm_loop.repl.host.shielded import shielded
from rlm_loop.repl.names import tools_frame
from rlm_loop.repl.rebuild import Rebuild, RecordedCalls, names_in_report
from rlm_loop.repl.results import RestartReport, cell_result, restarted
from rlm_loop.repl.settings import Settings


class WorkerLifecycle:
    """One session's REPL, from its start to its end, whatever happens to the process.

    `starter` starts the process.  `until_ready` waits for one that was replaced, where its start is not to count as the
    next cell's time.  Neither may hold the session, or it would never be collected: the REPL ends with `end`, with the
    host, or when this object is collected.
    """

    def __init__(self, settings: Settings, starter: Starter, until_ready: Callable[[], None] | None = None) -> None:
        self.settings, self._starter, self._until_ready = settings, starter, until_ready
        self.state = SessionState(settings.rebuild)
        self.resources = SessionResources()
        self._closed = False
        self._pid = os.getpid()
        self._finalizer = weakref.finalize(self, SessionResources.release, self.resources, self._pid)
        self._turns = threading.RLock()
        self._unready: list[tuple[int, str]] = []  # jobs of the beginning that were sent and not yet waited for

    # -- whose turn it is

    def turn(self) -> AbstractContextManager[bool]:
        """One thread at a time; not for a tool that the session itself waits for."""
        if id(self) in inside.get():
            raise ReplError("a tool cannot use the REPL that is waiting for it; give the tool a session of its own")
        return self._turns

    def check_open(self) -> None:
        """Raise `ReplError` where the session is closed."""
        if self._closed:
            raise ReplError("this REPL is closed; open a new one")

    def ready(self, seconds: float | None = None, *, start: bool = True) -> Driver:
        """The driver, within a `turn`; with `start`, its worker is set up.  Rebuilding takes at most `seconds`."""
        if self._closed:
            self.check_open()
        if os.getpid() != self._pid:
            raise ReplError("this REPL belongs to the process that this one was forked from; open a new one here")
        state, driver = self.state, self.resources.driver or self.place()[0]
        if death := driver.died_meanwhile():
            state.died_unseen(death.cause, state.foreseen())
        settled = driver.ready and not driver.fresh and driver.worker is not None and not self._unready
        if settled and state.expected is None and not state.cause:
            if self._until_ready is not None:
                self._until_ready()
        elif start or driver.worker is not None:
            self._make_ready(driver, self.settings.timeout if seconds is None else seconds)
        return driver

    def place(self) -> tuple[Driver, Path]:
        """The driver and the working folder, made when first asked for."""
        resources, settings = self.resources, self.settings
        cwd = resources.folder(settings.cwd, settings.files)
        if resources.driver is None:
            options = {**settings.worker_options(cwd, resources.home()), "read": resources.lent.paths}
            starter = worker_starter(self._starter, options, cwd, resources.home() / "worker.log")
            resources.driver = Driver(starter, settings.clock, settings.grace, id(self))
        return resources.driver, cwd

    def end(self) -> None:
        """End the process and all that it started, and remove the private folder.  May be called again."""
        self._closed = True
        worker = self.resources.driver.worker if self.resources.driver is not None else None
        if worker is not None and not self._turns.acquire(blocking=False):
            worker.control("quit")  # a cell runs in another thread: it ends as died
            self._turns.acquire()
        elif worker is None:
            self._turns.acquire()
        try:
            with shielded():
                self._finalizer()
        finally:
            self._turns.release()

    # -- jobs

    def account(self, driver: Driver, ended: Ended) -> RestartReport:
        """Update the state after a job; set up the next REPL where the job ended this one."""
        report = self.state.after(ended)
        if ended.how != "done" and not self._closed and driver.worker is not None and driver.fresh:
            try:
                self._give_beginning(driver)
            except BaseException:
                driver.drop()
                raise
        return report

    def tell(self, frame: Mapping[str, Any], what: str) -> None:
        """A job that has to succeed, for a REPL that has been started; `what` begins the message where it does not."""
        driver = self.ready(start=False)
        if driver.worker is None:
            return
        timeout, cap = self.settings.timeout, self.settings.output_cap
        ended, spent, _ = driver.serve(frame, self.state.tools, timeout)
        report = self.account(driver, ended)
        if ended.how != "done":
            self.state.died_unseen(ended.cause, report)
        if spent is not None:
            raise spent
        if ended.how != "done" or ended.stopped:
            raise ReplError(f"{what}: {restarted(ended, timeout, report)}")
        if "error" in ended.report:
            raise TypeError(f"{what} in the REPL: {cell_result(ended, timeout, cap).message}")

    # -- from a fresh REPL to where the next job must find it

    def _make_ready(self, driver: Driver, seconds: float) -> None:
        """Bring a fresh REPL to where the next cell must find it: tools, variables, setup, earlier cells."""
        if driver.worker is not None and self._until_ready is not None:
            self._until_ready()
        try:
            driver.begin()
            if driver.fresh:
                self._give_beginning(driver)
            self._await_beginning(driver)
            if self.state.expected is not None:
                self._run_again(driver, seconds, self.state.expected)
            else:
                self.state.nothing_to_rebuild()
        except BaseException:
            driver.drop()
            raise

    def _give_beginning(self, driver: Driver) -> None:
        """Send everything without waiting for it, so that a call which ended in a restart returns in time."""
        driver.fresh = False
        first = self.state.begin()
        jobs = [("tools", tools_frame(self.state.tools))] if self.state.tools else []
        jobs += [(name, dict(frame)) for name, frame in first.items()]
        if self.settings.setup.strip():
            jobs.append(("setup", {"t": "exec", "code": self.settings.setup, "file": "<setup>"}))
        if not jobs:
            self.state.kept = frozenset()
        self._unready = [(driver.send(frame), what) for what, frame in jobs]

    def _await_beginning(self, driver: Driver) -> None:
        state, timeout, cap = self.state, self.settings.timeout, self.settings.output_cap
        while self._unready:
            job, what = self._unready[0]
            calls = driver.calls(state.tools)
            if what == "setup" and state.setup_calls is not None:
                calls = RecordedCalls(calls, state.setup_calls, live=True)
            ended = driver.wait(job, timeout, calls)
            if ended.how == "done":
                state.names = names_in_report(ended, state.names)
            if ended.how != "done" or ended.stopped or "error" in ended.report:
                reason = cell_result(ended, timeout, cap)
                if what == "setup":
                    raise SetupFailed(f"the setup code failed: {reason.message}\n{reason.output}".rstrip())
                raise ReplError(f"cannot set {what!r} in the REPL: {reason.message}")
            self._unready.pop(0)
            if what == "setup" and state.setup_calls is None:
                state.setup_calls = tuple(calls.made)
            if not self._unready:
                state.kept = frozenset(state.names)

    def _run_again(self, driver: Driver, seconds: float, expected: tuple[str, ...]) -> None:
        """Rebuild the variables from the journal."""
        state, settings = self.state, self.settings
        events, given = state.journal.plan().events, state.kept | set(state.variables)
        again = Rebuild(events, seconds, settings.output_cap, settings.clock, given)
        while not again.attempt(driver, state.names, expected):
            self._give_beginning(driver)
            self._await_beginning(driver)
        state.came_back(again, expected)
