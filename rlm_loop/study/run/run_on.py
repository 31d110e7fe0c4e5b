"""Running the episodes of a study on an executor; what finishes is recorded as it comes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlm_loop.agents.background import interrupt_thread
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.grid import Episode, StudyAgent
from rlm_loop.study.run.episode import run_episode
from rlm_loop.study.run.executors import capacity, in_this_process, on_this_machine, worker_was_lost
from rlm_loop.study.run.jobs import Done, Job, keep_trace, pack, perform
from rlm_loop.study.run.limits import Pace, pacing
from rlm_loop.study.run.processes import BREAKING, SeparateProcesses
from rlm_loop.study.run.progress import to_stderr
from rlm_loop.study.run.scheduler import Scheduler
from rlm_loop.study.store.rows import crash_line, make_row

#: Seconds after which a wait is looked up from.
_LOOK = 0.5
#: So many lost workers with no episode finished in between end the run: something is wrong with the place.
LOST_AT_MOST = 8


class WorkerLost(Exception):
    """The worker of an episode ended while the episode ran: killed, out of memory, crashed, or its machine is gone."""


def run_on(
    executor: Executor,
    study: str,
    scheduler: Scheduler,
    agents: Callable[[Episode], StudyAgent],
    folder: Path,
    *,
    jobs: int | None = None,
    rate: float | None = None,
) -> int:
    """Run the episodes of a scheduler on an executor, started in order; returns how many were run.

    `jobs` are under way at a time, the executor's own number of workers where it is not given (twice that on a
    cluster, so that none waits for the next episode).  In threads an episode is called as it is; anywhere else it
    travels, and the row comes back, with the trace where the worker may not share `folder`.  `rate` is how many model
    calls may begin in a minute (see `Pace`), all episodes together: each worker gets its share of it.

    A worker that is lost costs the episode that it ran: a failed row of the class `WorkerLost`.  Where a pool of
    processes breaks as a whole, as that of the standard library does, the others that were under way are begun again
    in processes of their own.  Raises `StudyError` where episodes cannot travel, the executor gives up, or
    `LOST_AT_MOST` workers in a row are lost.

    Ctrl-C starts no further episode, waits for the running ones (their rows are kept) and raises `StudyInterrupted`; a
    second one stops these too, and keeps those that have ended.  Seconds of an episode are wall time, in which the
    other episodes share the machine.
    """
    with _Run(executor, study, scheduler, agents, folder, jobs, rate) as run:
        return run.through()


@dataclass
class _Begun:
    """An episode that was handed over: when, and to a pool that breaks as a whole or not."""

    episode: Episode
    started: str
    seconds: float
    alone: bool = True


class _Run:
    def __init__(
        self,
        executor: Executor,
        study: str,
        scheduler: Scheduler,
        agents: Callable[[Episode], StudyAgent],
        folder: Path,
        jobs: int | None,
        rate: float | None,
    ) -> None:
        self._executor, self._study, self._scheduler = executor, study, scheduler
        self._agents = agents if rate is None or not in_this_process(executor) else pacing(agents, Pace(rate))
        self._folder, self._jobs, self._rate = folder.absolute(), jobs, rate
        self._running: dict[Future[Any], _Begun] = {}
        self._again: list[Episode] = []
        self._lost = 0
        self._threads: set[int] = set()  # those of this process that run an episode
        self._capacity, self._ask_at = 0, float("-inf")
        self._own: SeparateProcesses | None = None

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *_: object) -> None:
        for future in self._running:
            future.cancel()
        if self._own is not None:
            self._own.shutdown()

    def through(self) -> int:
        scheduler = self._scheduler
        try:
            while True:
                self._fill()
                if not self._running:
                    return scheduler.done
                self._record(self._ended())
        except KeyboardInterrupt:
            self._end_softly()
            raise scheduler.interrupted() from None

    def _fill(self) -> None:
        while len(self._running) < self._room():
            episode = self._again.pop() if self._again else self._scheduler.next()
            if episode is None:
                return
            self._begin(episode)

    def _room(self) -> int:
        """How many may be under way; a cluster is asked once a second, since it grows and shrinks."""
        if self._jobs is not None:
            return self._jobs
        now = self._scheduler.clock.seconds()
        if now >= self._ask_at:
            self._capacity, self._ask_at = capacity(self._executor), now + 1.0
        return self._capacity

    def _begin(self, episode: Episode) -> None:
        clock = self._scheduler.clock
        begun = _Begun(episode, clock.now(), clock.seconds())
        if in_this_process(self._executor):
            future = self._executor.submit(self._in_thread, episode)
        else:
            shared = self._folder if on_this_machine(self._executor) else None
            share = None if self._rate is None else self._rate / self._room()
            payload = pack(Job(self._study, episode, self._agents(episode), shared, share))
            try:
                future = self._executor.submit(perform, payload)
            except BREAKING:
                self._replace()
                future = self._executor.submit(perform, payload)
        self._running[future] = replace(begun, alone=isinstance(self._executor, SeparateProcesses))

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
        return wait(self._running, timeout=_LOOK, return_when=FIRST_COMPLETED).done

    def _record(self, ended: set[Future[Any]]) -> None:
        for future in ended:
            begun, fault = self._running[future], None
            error = CancelledError() if future.cancelled() else future.exception()
            if isinstance(error, KeyboardInterrupt) and in_this_process(self._executor):
                del self._running[future]
                raise error
            if isinstance(error, BrokenProcessPool) and not begun.alone:
                self._replace()
                self._again.append(begun.episode)
            elif error is not None:
                self._failed(begun, error)
            else:
                fault = self._done(begun.episode, future.result())
            del self._running[future]  # only now: an interrupt in between must not lose a row
            if isinstance(fault, KeyboardInterrupt):  # while scoring
                raise fault

    def _done(self, episode: Episode, result: Any) -> BaseException | None:
        done = result if isinstance(result, Done) else Done(*result)
        keep_trace(self._folder, episode, done)
        self._lost = 0
        self._scheduler.end(episode, done.row, done.fault)
        return done.fault

    def _failed(self, begun: _Begun, error: BaseException) -> None:
        """An episode that brought no row: its worker is gone, or it could not even begin."""
        if isinstance(error, CancelledError):
            raise StudyError(
                "the executor cancelled an episode (is the cluster gone?); finished episodes are kept, run the same "
                "command again to go on"
            ) from error
        if isinstance(error, StudyError):
            raise error
        lost = worker_was_lost(error)
        if lost:
            self._lost += 1
            error = WorkerLost("its worker ended in mid-episode: killed, out of memory, crashed, or cut off")
        episode, clock = begun.episode, self._scheduler.clock
        spent = clock.seconds() - begun.seconds
        line, kind = crash_line(error), type(error).__name__
        row = make_row(self._study, episode, started=begun.started, seconds=spent, error=line, error_class=kind)
        self._scheduler.end(episode, row, error)
        if self._lost >= LOST_AT_MOST:
            raise StudyError(
                f"{self._lost} workers in a row were lost in mid-episode; see to their memory and their logs, then run "
                "the same command with --retry-failed"
            )

    def _replace(self) -> None:
        """A pool that broke as a whole takes no more calls: go on in processes that do not go down together."""
        if self._own is None:
            self._own = SeparateProcesses(min(self._room(), capacity(self._executor)))
        self._executor = self._own

    def _end_softly(self) -> None:
        try:
            if in_this_process(self._executor) or on_this_machine(self._executor):
                for future in [f for f in self._running if f.cancel()]:  # elsewhere it could be running, and be lost
                    del self._running[future]
            if self._running:
                to_stderr(f"waiting for {len(self._running)} running episodes to keep them; Ctrl-C again drops them")
            while self._running:
                self._record(self._ended())
        except KeyboardInterrupt:
            self._drop()

    def _drop(self) -> None:
        """Stop what runs; what has ended is kept."""
        if isinstance(self._executor, SeparateProcesses):
            self._executor.kill()
        for thread in tuple(self._threads):
            interrupt_thread(thread)
        with suppress(KeyboardInterrupt):
            self._record({f for f in self._running if f.done() and not f.cancelled() and f.exception() is None})
        self._running.clear()
