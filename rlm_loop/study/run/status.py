"""How far a study is, read from its rows; it may be running in another process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rlm_loop.study.errors import StudyError, no_study
from rlm_loop.study.store.folder import claimed
from rlm_loop.study.store.reading import every_row, files_of, latest, read_lock
from rlm_loop.study.store.rows import Row, finished


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

    `done` are episodes that ran to their end, `failed` those that crashed (`errors` counts them by kind), `left` those
    without a row.  `cost` is the sum of what is known, in US dollars, repeated attempts included; of `unpriced`
    attempts it is not known.  `unscored` counts the attempts whose scorer failed, by what it raised.
    """

    name: str
    running: bool
    planned: int
    done: int
    failed: int
    left: int
    cost: float
    unpriced: int
    arms: tuple[ArmStatus, ...]
    errors: Mapping[str, int]
    unscored: Mapping[str, int] = field(default_factory=dict[str, int])

    def lines(self) -> list[str]:
        """What a person wants to know, a sentence a line; crashes first."""
        ended = f"{self.done} of {self.planned} episodes done, {self.failed} failed, {self.left} left"
        known = f"${self.cost:.4g}" if self.cost or not self.unpriced else "not known"
        more = f" and {self.unpriced} episodes of unknown cost" if self.unpriced and self.cost else ""
        said = [f"failed: {_counted(self.errors)} (--retry-failed)"] if self.errors else []
        said.append(f"{ended}; cost so far {known}{more}")
        if self.unscored:
            said.append(f"not scored: {_counted(self.unscored)} (the next run scores them again)")
        if self.running:
            return [*said, "a process is running it"]
        return [*said, "nothing is running" + ("; run the same command again to go on" if self.left else "")]


def _counted(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{n} x {kind}" for kind, n in kinds.items())


def status(folder: str | Path) -> Status:
    """How far the study in a folder is; planned are all arms on all tasks with all seeds that the study ever had.

    Raises `StudyError` where the folder holds no study, or something in it cannot be read.
    """
    lock = read_lock(folder)
    if lock is None:
        raise StudyError(no_study(folder))
    tries = list(every_row(folder))
    rows = latest(tries)
    units = sum(map(len, lock["tasks"].values())) * len(lock["seeds"])
    pairs = [(arm, model) for arm, by_model in lock["arms"].items() for model in by_model]
    failed = [r for r in rows if not finished(r)]
    return Status(
        name=str(lock["name"]),
        running=any(map(claimed, files_of(folder))),
        planned=units * len(pairs),
        done=len(rows) - len(failed),
        failed=len(failed),
        left=max(0, units * len(pairs) - len(rows)),
        cost=sum(r.get("cost") or 0.0 for r in tries if not r.get("rescored")),
        unpriced=sum(r.get("cost") is None and bool(r.get("calls")) for r in tries),
        arms=tuple(_arm(arm, model, units, rows) for arm, model in pairs),
        errors=dict(Counter(str(r.get("error_class") or str(r["error"]).partition(":")[0]) for r in failed)),
        unscored=dict(Counter(str(r["scorer_error"]).partition(":")[0] for r in rows if r.get("scorer_error"))),
    )


def _arm(arm: str, model: str, planned: int, rows: list[Row]) -> ArmStatus:
    mine = [r for r in rows if r["arm"] == arm and r["model"] == model]
    failed = sum(not finished(r) for r in mine)
    resolved = sum(bool(r["resolved"]) for r in mine)
    unknown = sum(r["resolved"] is None for r in mine)
    return ArmStatus(arm, model, planned, len(mine) - failed, failed, resolved, unknown)
