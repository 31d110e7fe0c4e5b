"""A run of a study: its episodes one after the other or on an executor, and a row recorded as each ends."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

from rlm_loop.models.base import ModelError
from rlm_loop.plugins import offered, plugin
from rlm_loop.repl.host.shielded import interrupt_thread
from rlm_loop.study.errors import StudyError, StudyInterrupted
from rlm_loop.study.plan.grid import Episode, StudyAgent
from rlm_loop.study.plan.identity import require_version, versions_of
from rlm_loop.study.run.episode import run_episode
from rlm_loop.study.run.progress import Progress, to_stderr
from rlm_loop.study.run.spending import Spending
from rlm_loop.study.store.folder import Store
from rlm_loop.study.store.rows import Row, crash_line, finished, kind_of, never_begun

#: An arm whose first so many tasks all end in a crash of one kind ends the study.
_ALIKE = 3
#: Seconds after which a wait is looked up from.
_LOOK = 0.5


class Runner:
    """The episodes of one run of a study, in their order.

    After `seconds` no further task is started (a task begun is done by all arms), and the limits of `spending` allow no
    episode that could use too much.  Where the first three tasks of an arm all end in a crash of one kind, `stopped`
    says so and no further episode is started; `rows` are those that the folder has, so that a study can be gone on with
    all the same.
    """

    def __init__(
        self,
        study: str,
        episodes: Sequence[Episode],
        agents: Callable[[Episode], StudyAgent],
        store: Store,
        progress: Progress,
        rows: Sequence[Row],
        spending: Sequence[Spending],
        seconds: float | None,
    ) -> None:
        self.stopped = ""
        self._kinds: dict[tuple[str, str], dict[tuple[str, str, bool], str | None]] = {}
        for row in rows:
            self._crashed_alike(row)
        self.done = self._never_begun = 0
        self._planned = len(episodes)
        self._study, self._agents, self._store, self._folder = study, agents, store, store.folder.absolute()
        self._progress, self._spending, self._versions = progress, spending, versions_of(rows)
        self._until = float("inf") if seconds is None else time.monotonic() + seconds
        self._waiting = list(reversed(episodes))
        self._task: tuple[str, str] | None = None
        self._first = sum(_task(c) == _task(episodes[0]) for c in episodes)
        self._running: dict[Future[Any], Episode] = {}
        self._threads: set[int] = set()  # those of this process that run an episode

    @property
    def left(self) -> int:
        """The number of episodes without a row."""
        return self._planned - self.done

    def run_on(self, executor: Executor, jobs: int) -> None:
        """Run the episodes on an executor, `jobs` at a time, started in order, a row for each; a crash is a row.

        In this process an episode is called as it is; anywhere else the agent and the task are pickled, and the worker
        writes the trace into the folder, which it has to share.  Raises the fault of a missing key, model or server
        that was met by every arm of the first task, and `StudyError` where the executor brings no row: something does
        not pickle, or a worker is gone.

        Ctrl-C starts no further episode, waits for the running ones (their rows are kept) and raises
        `StudyInterrupted`; a second one stops these too, and keeps those that have ended.  Seconds of an episode are
        wall time, in which the other episodes share the machine.
        """
        try:
            while True:
                while len(self._running) < jobs and (episode := self._next()) is not None:
                    self._running[self._submitted(executor, episode)] = episode
                if not self._running:
                    return
                self._record(self._ended())
        except KeyboardInterrupt:
            self._end_softly(in_threads=isinstance(executor, ThreadPoolExecutor))
            raise StudyInterrupted(
                f"stopped with {self.left} episodes to go; finished episodes are kept, run the same command again to "
                f"go on (results: {self._store.folder})"
            ) from None
        finally:
            for future in self._running:
                future.cancel()

    def _next(self) -> Episode | None:
        """The next episode to start now; `None` where there is none, or none before a running one has ended."""
        if not self._waiting or self.stopped:
            return None
        episode = self._waiting[-1]
        if _task(episode) != self._task and time.monotonic() >= self._until:
            return None
        allowed = [limit.allows(episode, self._running.values()) for limit in self._spending]
        if not all(allowed):
            return None
        self._task = _task(episode)
        return self._waiting.pop()

    def _end(self, episode: Episode, row: Row, fault: BaseException | None) -> None:
        """Record the row of an episode that was run."""
        require_version(row, self._versions)
        self._store.append(row)
        for limit in self._spending:
            limit.spent(row)
        self._progress.end(row)
        self.done += 1
        if self._crashed_alike(row):
            self.stopped = f"{row['arm']} crashed alike in its first {_ALIKE} tasks: {row['error']}"
        self._never_begun += never_begun(row)
        if fault is not None and self._never_begun == self._first == self.done:
            raise fault

    def _crashed_alike(self, row: Row) -> bool:
        """Return whether the tasks of the row's arm, which are now so many, all ended in a crash of one kind."""
        kinds = self._kinds.setdefault((row["arm"], row["model"]), {})
        kinds[row["suite"], row["task"], finished(row)] = kind_of(
            row
        )  # of a sound episode no later crash takes its place
        return len(kinds) == _ALIKE and None not in kinds.values() and len(set(kinds.values())) == 1

    def _submitted(self, executor: Executor, episode: Episode) -> Future[Any]:
        if isinstance(executor, (InTurn, ThreadPoolExecutor)):
            return executor.submit(self._here, episode)
        try:
            return executor.submit(_perform, self._study, episode, self._agents(episode), self._folder)
        except Exception as error:  # of a pool that is broken, or a pickler
            raise _no_row(episode, error) from error

    def _here(self, episode: Episode) -> Any:
        self._threads.add(threading.get_ident())
        try:
            return run_episode(self._study, episode, self._agents, self._folder)
        finally:
            self._threads.discard(threading.get_ident())

    def _ended(self) -> set[Future[Any]]:
        """Wait shortly for an episode to end; return those that have.  Python sees a signal only between two waits."""
        return wait(self._running, timeout=_LOOK, return_when=FIRST_COMPLETED).done

    def _record(self, ended: Iterable[Future[Any]]) -> None:
        for future in ended:
            episode = self._running[future]
            error = CancelledError() if future.cancelled() else future.exception()
            if isinstance(error, KeyboardInterrupt):
                del self._running[future]
                raise error
            if error is not None:
                raise _no_row(episode, error) from error
            row, fault = future.result()
            self._end(episode, row, fault)
            del self._running[future]  # only now: an interrupt in between must not lose a row
            if isinstance(fault, KeyboardInterrupt):  # while scoring
                raise fault

    def _end_softly(self, *, in_threads: bool) -> None:
        """Wait for what runs, and record it; stop it where Ctrl-C comes again."""
        try:
            if in_threads:
                for future in [f for f in self._running if f.cancel()]:  # elsewhere it could be running, and be lost
                    del self._running[future]
            if self._running:
                to_stderr(f"waiting for {len(self._running)} running episodes to keep them; Ctrl-C again drops them")
            while self._running:
                self._record(self._ended())
        except KeyboardInterrupt:
            for thread in tuple(self._threads):
                interrupt_thread(thread)
            with suppress(KeyboardInterrupt):
                self._record([f for f in self._running if f.done() and not f.cancelled() and f.exception() is None])
            self._running.clear()


class InTurn(Executor):
    """An executor that makes each call before it returns, in the thread that asks for it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return what the call returned; what it raises is raised here."""
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def executor_named(name: str) -> Executor:
    """Return the executor that an installed package offers (see `rlm_loop.plugins`); raises `StudyError` for none."""
    make = plugin("executors", name)
    if make is None:
        known = ", ".join(offered("executors")) or "none"
        raise StudyError(f"no installed package offers an executor {name!r}; there are: {known}")
    return make()


def workers_of(executor: Executor) -> int:
    """Return how many calls an executor makes at a time; the cores of this machine where it does not say."""
    return int(getattr(executor, "_max_workers", 0)) or os.cpu_count() or 1


def _perform(study: str, episode: Episode, agent: StudyAgent, folder: Path) -> tuple[Row, BaseException | None]:
    """Run an episode in a worker process: its row, and a model's fault, without what hangs on it."""
    row, fault = run_episode(study, episode, lambda _: agent, folder)
    return row, type(fault)(fault.message, fault.model, fault.retryable) if isinstance(fault, ModelError) else None


def _no_row(episode: Episode, error: BaseException) -> StudyError:
    return StudyError(
        f"the executor brought no row for {episode.arm} on {episode.suite}/{episode.task.id} ({crash_line(error)}); "
        "all that it is given has to pickle (models by name), and its workers need this folder; finished episodes are "
        "kept: run again to go on, or in threads (jobs)"
    )


def _task(episode: Episode) -> tuple[str, str]:
    return (episode.suite, episode.task.id)
