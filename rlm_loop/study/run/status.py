"""State of a study, read from its rows; it may be running in another process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rlm_loop.study.store.folder import claimed
from rlm_loop.study.store.reading import every_row, files_of, latest, lock_of
from rlm_loop.study.store.rows import finished, kind_of


@dataclass(frozen=True)
class Status:
    """A study at one moment.

    `done` are episodes that ran to their end, of which nothing judged `unknown`, `failed` those that crashed (`errors`
    counts them by kind), `left` those without a row.  `cost` is the sum of what is known, in US dollars, repeated
    attempts included; of `unpriced` attempts it is not known.  `unscored` counts the attempts whose scorer failed, by
    the class of its error.
    """

    name: str
    running: bool
    planned: int
    done: int
    failed: int
    left: int
    unknown: int
    cost: float
    unpriced: int
    errors: Mapping[str, int]
    unscored: Mapping[str, int] = field(default_factory=dict[str, int])

    def lines(self) -> list[str]:
        """The state in sentences, one a line; crashes first."""
        told = [f"failed: {_counted(self.errors)} (--retry-failed)"] if self.errors else []
        known = f"${self.cost:.4g}" if self.cost or not self.unpriced else "not known"
        more = f" and {self.unpriced} episodes of unknown cost" if self.cost and self.unpriced else ""
        unknown = f" ({self.unknown} not judged)" if self.unknown else ""
        ended = f"{self.done} of {self.planned} episodes done{unknown}, {self.failed} failed, {self.left} left"
        told.append(f"{ended}; cost so far {known}{more}")
        if self.unscored:
            told.append(f"not scored: {_counted(self.unscored)} (the next run scores them again)")
        again = "; run the same command again to go on" if self.left else ""
        return [*told, "a process is running it" if self.running else f"nothing is running{again}"]


def _counted(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{n} x {kind}" for kind, n in kinds.items())


def status(folder: str | Path) -> Status:
    """Report how far the study in a folder is; planned are all arms on all tasks with all seeds that it ever had.

    Raises `StudyError` where the folder holds no study, or something in it cannot be read.
    """
    lock = lock_of(folder)
    tries = list(every_row(folder))
    rows = latest(tries)
    units = sum(map(len, lock["tasks"].values())) * len(lock["seeds"])
    planned = sum(map(len, lock["arms"].values())) * units
    return Status(
        name=str(lock["name"]),
        running=any(map(claimed, files_of(folder))),
        planned=planned,
        done=sum(map(finished, rows)),
        failed=sum(not finished(r) for r in rows),
        left=max(0, planned - len(rows)),
        unknown=sum(finished(r) and r["resolved"] is None for r in rows),
        cost=sum(r.get("cost") or 0.0 for r in tries if not r.get("rescored")),
        unpriced=sum(r.get("cost") is None and bool(r.get("calls")) for r in tries),
        errors=dict(Counter(str(kind_of(r)) for r in rows if not finished(r))),
        unscored=dict(Counter(str(r["scorer_error"]).partition(":")[0] for r in rows if r.get("scorer_error"))),
    )
