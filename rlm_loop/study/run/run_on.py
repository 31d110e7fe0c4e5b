"""Running the episodes of a study on an executor; what finishes is recorded as it comes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

from rlm_loop.agents.background import interrupt_thread
from rlm_loop.models.base import ModelError
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.grid import Episode, StudyAgent
from rlm_loop.study.run.episode import run_episode
from rlm_loop.study.run.progress import to_stderr
from rlm_loop.study.run.scheduler import Clock, Scheduler, no_room
from rlm_loop.study.store.rows import Row, crash_line

#: Seconds after which a wait is looked up from.
_LOOK = 0.5


def workers_of(executor: Executor) -> int:
    """How many calls an executor makes at a time; the cores of this machine where it does not say."""
    return int(getattr(executor, "_max_workers", 0)) or os.cpu_count() or 1


def run_on(
    executor: Executor,
    study: str,
    scheduler: Scheduler,
    agents: Callable[[Episode], StudyAgent],
    folder: Path,
    jobs: int,
) -> int:
    """Run the episodes of a scheduler on an executor, `jobs` at a time, started in order; returns how many were run.

    In threads an episode is called as it is; anywhere else the agent and the task are pickled, and the worker writes
    the trace into `folder`, which it has to share.  Raises `StudyError` where the executor brings no row: something
    does not pickle, or a worker is gone.

    Ctrl-C starts no further episode, waits for the running ones (their rows are kept) and raises `StudyInterrupted`; a
    second one stops these too, and keeps those that have ended.  Seconds of an episode are wall time, in which the
    other episodes share the machine.
    """
    run = _Run(executor, study, scheduler, agents, folder.absolute(), jobs)
    try:
        return run.through()
    finally:
        for future in run.running:
            future.cancel()


def perform(study: str, episode: Episode, agent: StudyAgent, folder: Path) -> tuple[Row, BaseException | None]:
    """Run an episode in a worker process: its row, and of a fault what a study acts on."""
    row, fault = run_episode(study, episode, lambda _: agent, folder, Clock())
    return row, _portable(fault)


def _portable(fault: BaseException | None) -> BaseException | None:
    """A model's fault or a full disk without what hangs on it (the whole run); `None` for all others."""
    if isinstance(fault, ModelError):
        told = type(fault)(fault.message, fault.model, fault.retryable)
        told.retry_after, told.waited = fault.retry_after, fault.waited
        return told
    full = no_room(fault)
    return None if full is None else OSError(full.errno, full.strerror, full.filename)


class _Run:
    def __init__(
        self,
        executor: Executor,
        study: str,
        scheduler: Scheduler,
        agents: Callable[[Episode], StudyAgent],
        folder: Path,
        jobs: int,
    ) -> None:
        self._executor, self._study, self._scheduler = executor, study, scheduler
        self._agents, self._folder, self._jobs = agents, folder, jobs
        self._in_threads = isinstance(executor, ThreadPoolExecutor)
        self._threads: set[int] = set()  # those of this process that run an episode
        self.running: dict[Future[Any], Episode] = {}

    def through(self) -> int:
        scheduler = self._scheduler
        try:
            while True:
                while len(self.running) < self._jobs and (episode := scheduler.next()) is not None:
                    self.running[self._begin(episode)] = episode
                if not self.running:
                    return scheduler.done
                self._record(self._ended())
        except KeyboardInterrupt:
            self._end_softly()
            raise scheduler.interrupted() from None

    def _begin(self, episode: Episode) -> Future[Any]:
        if self._in_threads:
            return self._executor.submit(self._in_thread, episode)
        try:
            return self._executor.submit(perform, self._study, episode, self._agents(episode), self._folder)
        except Exception as error:  # of a pool that is broken, or a pickler
            raise _no_row(episode, error) from error

    def _in_thread(self, episode: Episode) -> Any:
        self._threads.add(threading.get_ident())
        try:
            return run_episode(self._study, episode, self._agents, self._folder, self._scheduler.clock)
        finally:
            self._threads.discard(threading.get_ident())

    def _ended(self) -> set[Future[Any]]:
        """Those that have ended, as soon as one has.

        Python sees a signal between two steps of the main thread.  One that comes just before a wait begins (on
        Windows, one at any time in it) is seen when the wait is over, so no wait is long.
        """
        return wait(self.running, timeout=_LOOK, return_when=FIRST_COMPLETED).done

    def _record(self, ended: set[Future[Any]]) -> None:
        for future in ended:
            episode = self.running[future]
            error = CancelledError() if future.cancelled() else future.exception()
            if isinstance(error, KeyboardInterrupt):
                del self.running[future]
                raise error
            if error is not None:
                raise _no_row(episode, error) from error
            row, fault = future.result()
            self._scheduler.end(episode, row, fault)
            del self.running[future]  # only now: an interrupt in between must not lose a row
            if isinstance(fault, KeyboardInterrupt):  # while scoring
                raise fault

    def _end_softly(self) -> None:
        try:
            if self._in_threads:
                for future in [f for f in self.running if f.cancel()]:  # elsewhere it could be running, and be lost
                    del self.running[future]
            if self.running:
                to_stderr(f"waiting for {len(self.running)} running episodes to keep them; Ctrl-C again drops them")
            while self.running:
                self._record(self._ended())
        except KeyboardInterrupt:
            self._drop()

    def _drop(self) -> None:
        """Stop what runs; what has ended is kept."""
        for thread in tuple(self._threads):
            interrupt_thread(thread)
        with suppress(KeyboardInterrupt):
            self._record({f for f in self.running if f.done() and not f.cancelled() and f.exception() is None})
        self.running.clear()


def _no_row(episode: Episode, error: BaseException) -> StudyError:
    return StudyError(
        f"the executor brought no row for {episode.arm} on {episode.suite}/{episode.task.id} ({crash_line(error)}); "
        "all that it is given has to pickle (models by name), and its workers need this folder; finished episodes are "
        "kept: run again to go on, or in threads (jobs)"
    )
