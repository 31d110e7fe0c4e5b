"""How far a study is, seen from anywhere while it runs: `running.json` in its folder says what its runner does."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rlm_loop.study.errors import StudyError, no_study
from rlm_loop.study.plan.grid import Episode
from rlm_loop.study.run.progress import Progress, duration
from rlm_loop.study.store.folder import claimed, replace_file
from rlm_loop.study.store.reading import RESULTS, every_row, latest, parse, read_lock
from rlm_loop.study.store.rows import Row, finished, key
from rlm_loop.traces.received import file_bytes

RUNNING = "running.json"


class RecordedProgress:
    """A progress by which `status` can follow a run from another terminal: it keeps `running.json` until it is closed.

    One that cannot be written is no reason to stop.  `plan` are the numbers of episodes `planned`, `todo` and `jobs`.
    """

    def __init__(self, folder: Path, shown: Progress, now: Callable[[], float] = time.time, **plan: int) -> None:
        self._path, self._shown, self._now = folder / RUNNING, shown, now
        self._plan = {"schema": 1, **plan, "began": now()}
        self._running: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._done = 0
        self._write()

    def begin(self, episode: Episode) -> None:
        who = dict(zip(("arm", "model", "suite", "task", "seed"), episode.key, strict=True))
        self._running[episode.key] = {**who, "began": self._now()}
        self._write()
        self._shown.begin(episode)

    def end(self, row: Row) -> None:
        self._running.pop(key(row), None)
        self._done += 1
        self._write()
        self._shown.end(row)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink()
        self._shown.close()

    def _write(self) -> None:
        value = {**self._plan, "done": self._done, "running": list(self._running.values())}
        with contextlib.suppress(OSError):
            replace_file(self._path, json.dumps(value).encode("utf-8", "surrogatepass"))


@dataclass(frozen=True)
class ArmStatus:
    """One arm with one model: episodes planned, finished and failed, and how many of these were resolved."""

    arm: str
    model: str
    planned: int
    done: int
    failed: int
    resolved: int
    unknown: int


@dataclass(frozen=True)
class Status:
    """A study at one moment.

    `done` are episodes that ran to their end, `failed` those that crashed, `left` those without a row.  `now` are the
    episodes under way with the `seconds` they have taken.  `per_minute` is how many this run has ended a minute,
    `seconds_left` what that makes for the rest; `None` where nothing runs, or nothing has ended yet.  `cost` is the sum
    of what is known, in US dollars, repeated attempts included; of `unpriced` attempts it is not known.  `unscored`
    counts the attempts whose scorer failed, by what it raised.
    """

    name: str
    running: bool
    planned: int
    done: int
    failed: int
    left: int
    now: tuple[Mapping[str, Any], ...]
    jobs: int
    per_minute: float | None
    seconds_left: float | None
    cost: float
    unpriced: int
    arms: tuple[ArmStatus, ...]
    errors: Mapping[str, int]
    started: str = ""
    unscored: Mapping[str, int] = field(default_factory=dict[str, int])

    def lines(self) -> list[str]:
        """What a person wants to know, a sentence a line."""
        ended = f"{self.done} of {self.planned} episodes done, {self.failed} failed, {self.left} left"
        known = f"${self.cost:.4g}" if self.cost or not self.unpriced else "not known"
        more = f" and {self.unpriced} episodes of unknown cost" if self.unpriced and self.cost else ""
        said = [f"{ended}; cost so far {known}{more}"]
        if self.errors:
            said.append(
                "failed: " + ", ".join(f"{n} x {kind}" for kind, n in self.errors.items()) + " (--retry-failed)"
            )
        if self.unscored:
            kinds = ", ".join(f"{n} x {kind}" for kind, n in self.unscored.items())
            said.append(f"not scored: {kinds} (the next run scores them again)")
        if not self.running:
            return [*said, "nothing is running" + ("; run the same command again to go on" if self.left else "")]
        pace = "" if self.per_minute is None else f", {self.per_minute:.3g} a minute"
        rest = "" if self.seconds_left is None or not self.left else f", about {duration(self.seconds_left)} left"
        said.append(f"running since {self.started or 'a moment ago'} with {self.jobs} at a time{pace}{rest}")
        return said + [
            f"now: {c['arm']} on {c['suite']}/{c['task']}, seed {c['seed']}, for {duration(c['seconds'])}"
            for c in self.now
        ]


def status(folder: str | Path, *, now: Callable[[], float] = time.time) -> Status:
    """How far the study in a folder is; it may be running.

    Where no runner is there, what is planned are all arms on all tasks with all seeds that the study ever had.
    Raises `StudyError` where the folder holds no study, or something in it cannot be read.
    """
    lock = read_lock(folder)
    if lock is None:
        raise StudyError(no_study(folder))
    tries = list(every_row(folder))
    rows = latest(tries)
    running = claimed(Path(folder) / RESULTS)
    run = _running(Path(folder)) if running else {}
    units = sum(map(len, lock["tasks"].values())) * len(lock["seeds"])
    pairs = [(arm, model) for arm, by_model in lock["arms"].items() for model in by_model]
    arms = tuple(_arm(arm, model, units, rows) for arm, model in pairs)
    planned = int(run.get("planned", units * len(arms)))
    ended, began = int(run.get("done", 0)), float(run.get("began", now()))
    left = max(0, int(run["todo"]) - ended if run else planned - len(rows))
    per_second = ended / max(now() - began, 1e-9) if ended else None
    failed = [r for r in rows if not finished(r)]
    return Status(
        name=str(lock["name"]),
        running=running,
        planned=planned,
        done=len(rows) - len(failed),
        failed=len(failed),
        left=left,
        now=tuple({**e, "seconds": round(max(0.0, now() - e["began"]), 1)} for e in run.get("running", ())),
        jobs=int(run.get("jobs", 0)),
        per_minute=None if per_second is None else per_second * 60,
        seconds_left=None if per_second is None else left / per_second,
        cost=sum(r.get("cost") or 0.0 for r in tries if not r.get("rescored")),
        unpriced=sum(r.get("cost") is None and bool(r.get("calls")) for r in tries),
        arms=arms,
        errors=dict(Counter(str(r.get("error_class") or str(r["error"]).partition(":")[0]) for r in failed)),
        unscored=dict(Counter(str(r["scorer_error"]).partition(":")[0] for r in rows if r.get("scorer_error"))),
        started=datetime.fromtimestamp(began, UTC).isoformat(timespec="seconds") if run else "",
    )


def _arm(arm: str, model: str, planned: int, rows: list[Row]) -> ArmStatus:
    mine = [r for r in rows if r["arm"] == arm and r["model"] == model]
    failed = sum(not finished(r) for r in mine)
    resolved = sum(bool(r["resolved"]) for r in mine)
    unknown = sum(r["resolved"] is None for r in mine)
    return ArmStatus(arm, model, planned, len(mine) - failed, failed, resolved, unknown)


def _running(folder: Path) -> dict[str, Any]:
    """What the runner says; nothing where it has not said anything yet."""
    try:
        found = parse(file_bytes(folder / RUNNING).decode(errors="replace"))
    except OSError:
        return {}
    return found if found is not None and found.get("schema") == 1 else {}
