"""The scheduler of a study: it hands out episodes in order and takes back their rows, wherever they run."""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rlm_loop.models.base import RateLimited
from rlm_loop.study.errors import StudyError, StudyInterrupted
from rlm_loop.study.plan.grid import Episode
from rlm_loop.study.plan.identity import Versions
from rlm_loop.study.run.progress import Progress
from rlm_loop.study.run.spending import Spending
from rlm_loop.study.store.folder import Store
from rlm_loop.study.store.rows import Row, finished, never_begun

#: The disk is full, a quota is used up, or a file may not grow any more.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: How often an episode is begun again after a provider's limit ended it, and how long to wait where it did not say.
_TRIES, _PAUSE = 3, 30.0
#: An arm whose first so many tasks all end in a crash of one kind ends the study.
_ALIKE = 3


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Clock:
    """Where times come from; an argument, so that tests need not wait."""

    seconds: Callable[[], float] = time.monotonic
    now: Callable[[], str] = utc_now
    sleep: Callable[[float], None] = time.sleep


class Scheduler:
    """The order of one run of a study.

    Whatever runs episodes asks `next()` for one as long as it has room, and gives each back by `end`.  After `seconds`
    no further task is started (a task begun is done by all arms), and the limits of `spending` allow no episode that
    could use too much.  Where the first three tasks of an arm all end in a crash of one kind, `stopped` says so and no
    further episode is started; `rows` are those that the folder has, so that a study can be gone on with all the same.
    A provider that limits the rate holds the whole study: no further episode is started for as
    long as it asked, and the episode itself is begun again.
    """

    def __init__(
        self,
        episodes: Sequence[Episode],
        store: Store,
        progress: Progress,
        *,
        seconds: float | None = None,
        spending: Sequence[Spending] = (),
        versions: Versions | None = None,
        clock: Clock | None = None,
        rows: Iterable[Row] = (),
    ) -> None:
        self.stopped = ""
        self._crashes: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
        self._sound: set[tuple[str, str]] = set()
        for row in rows:
            self._note_crash(row)
        self.clock = clock or Clock()
        self.done = 0
        self.planned = len(episodes)
        self._waiting = list(reversed(episodes))
        self._running: dict[tuple[object, ...], Episode] = {}
        self._store, self._progress = store, progress
        self._seconds, self._spending, self._versions = seconds, spending, versions or Versions(())
        self._begun = self.clock.seconds()
        self._task: tuple[str, str] | None = None
        self._first = sum(_task(c) == _task(episodes[0]) for c in episodes)
        self._never_begun = 0
        self._held_until = 0.0
        self._limited: dict[tuple[object, ...], int] = {}

    @property
    def left(self) -> int:
        """How many episodes have no row yet."""
        return self.planned - self.done

    def next(self) -> Episode | None:
        """The next episode to start now; `None` where there is none, or none before a running one has ended."""
        if not self._waiting or self.stopped:
            return None
        pause = self._held_until - self.clock.seconds()
        if pause > 0 and self._running:
            return None
        if pause > 0:
            self.clock.sleep(pause)
        episode = self._waiting[-1]
        new = _task(episode) != self._task
        if new and self._seconds is not None and self.clock.seconds() - self._begun >= self._seconds:
            return None
        allowed = [limit.allows(episode, self._running.values()) for limit in self._spending]
        if not all(allowed):
            return None
        self._waiting.pop()
        self._task = _task(episode)
        self._running[episode.key] = episode
        self._progress.begin(episode)
        return episode

    def end(self, episode: Episode, row: Row, fault: BaseException | None) -> None:
        """Record the row of an episode that was run.

        An attempt that is broken off, to be begun again, has a row as well (`again`): it cost something too.  Raises
        `StudyError` where the disk is full (the episode runs again in the next run, or is only scored again), and the
        fault itself where a missing key, model or server was met by every arm of the first task.
        """
        self._running.pop(episode.key, None)
        crashed = row.get("error") is not None  # else it was the scorer that failed
        if (full := no_room(fault)) is not None:
            with contextlib.suppress(StudyError):  # it may be another disk
                self._store.append({**row, "again": True} if crashed else row)
            raise StudyError(
                f"{episode.arm} on {episode.suite}/{episode.task.id} could not write {full.filename or 'its files'}: "
                f"{full.strerror}; all finished episodes are kept: make room and run the same command again"
            ) from fault
        self._versions.learn(row)
        again = crashed and isinstance(fault, RateLimited) and self._again(episode, fault)
        self._store.append({**row, "again": True} if again else row)
        for limit in self._spending:
            limit.spent(row)
        if again:
            return
        self._progress.end(row)
        self.done += 1
        alike = self._note_crash(row)
        if len(alike) == _ALIKE and len(set(alike)) == 1:
            self.stopped = f"{row['arm']} crashed alike in its first {_ALIKE} tasks: {row['error']}"
        self._never_begun += never_begun(row)
        if crashed and fault is not None and self._never_begun == self._first == self.done:
            raise fault

    def _note_crash(self, row: Row) -> list[str]:
        """The kinds of crash that all tasks of the row's arm ended in; empty where one did not."""
        arm = (row["arm"], row["model"])
        if finished(row):
            self._sound.add(arm)
        elif arm not in self._sound and not row.get("again"):
            crashes = self._crashes.setdefault(arm, {})
            crashes[row["suite"], row["task"]] = str(row.get("error_class"))
            return list(crashes.values())
        return []

    def interrupted(self) -> StudyInterrupted:
        """What to raise on Ctrl-C."""
        return StudyInterrupted(
            f"stopped with {self.left} episodes to go; finished episodes are kept, run the same command again to go on",
            self.done,
            self.planned,
        )

    def _again(self, episode: Episode, fault: RateLimited) -> bool:
        tries = self._limited[episode.key] = self._limited.get(episode.key, 0) + 1
        pause = fault.retry_after if fault.retry_after is not None else _PAUSE * 2 ** (tries - 1)
        self._held_until = max(self._held_until, self.clock.seconds() + pause)
        if tries >= _TRIES:
            return False
        self._waiting.append(episode)
        return True


def no_room(fault: BaseException | None) -> OSError | None:
    """The error of a full disk that is behind a fault, if there is one."""
    seen: set[int] = set()
    while fault is not None and id(fault) not in seen:
        seen.add(id(fault))
        if isinstance(fault, OSError) and fault.errno in _NO_ROOM:
            return fault
        fault = fault.__cause__ or fault.__context__
    return None


def _task(episode: Episode) -> tuple[str, str]:
    return (episode.suite, episode.task.id)
