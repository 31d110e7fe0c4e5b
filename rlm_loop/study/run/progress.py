"""The progress of a study: a bar or a line an episode while it runs, and its state as another process reads it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_loop.study.store.folder import claimed
from rlm_loop.study.store.reading import every_row, files_of, latest, lock_of
from rlm_loop.study.store.rows import Row, finished, kind_of
from rlm_loop.traces.kept import in_kernel


class Progress:
    """Count of the episodes that have a row, and of those that were judged and resolved.

    Where it is `shown`, a bar of tqdm on a terminal or in a notebook (crashes are written above it, since they ask for
    attention), else a line an episode on standard error.  A study that goes on first says what is left.
    """

    def __init__(self, rows: Iterable[Row], planned: int, *, shown: bool) -> None:
        self._shown, self._planned = shown, planned
        self._done = self._judged = self._resolved = 0
        for row in rows:
            self._count(row)
        if shown and self._done:
            to_stderr(f"going on: {self._done} of {planned} episodes are there, {planned - self._done} are left")
        self._bar: Any = None
        if shown and (in_kernel() or sys.stderr.isatty()):
            from tqdm.auto import tqdm

            shape = "{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"
            self._bar = tqdm(total=planned, initial=self._done, bar_format=shape, dynamic_ncols=True)

    def end(self, row: Row) -> None:
        """Hear that an episode has its row."""
        self._count(row)
        so_far = f"{self._resolved} of {self._judged} resolved"
        if self._bar is not None:
            if not finished(row):
                self._bar.write(describe(row), file=sys.stderr)
            self._bar.set_postfix_str(so_far, refresh=False)
            self._bar.update(1)
        elif self._shown:
            to_stderr(f"[{self._done}/{self._planned}] {describe(row)}; {so_far}")

    def close(self) -> None:
        """Leave a bar as it is."""
        if self._bar is not None:
            self._bar.close()

    def _count(self, row: Row) -> None:
        self._done += 1
        self._judged += row["resolved"] is not None
        self._resolved += bool(row["resolved"])


def describe(row: Mapping[str, Any]) -> str:
    """Describe a finished or crashed episode in a few words."""
    where = f"{row['arm']} on {row['suite']}/{row['task']}" + (f", seed {row['seed']}" if row["seed"] else "")
    if not finished(row):
        return f"{where}: crashed, {row['error']}"
    tokens = (row["input_tokens"] or 0) + (row["output_tokens"] or 0)
    verdict = "resolved" if row["resolved"] else f"not resolved ({row['stop']})"
    if row["resolved"] is None:
        verdict = f"not judged ({row.get('scorer_error') or row['stop']})"
    return f"{where}: {verdict}, {row['steps']} turns, {tokens:,} tokens, {row['seconds']:.0f} s"


def to_stderr(line: str) -> None:
    """Write a line to standard error."""
    print(line, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Status:
    """A study at one moment.

    `done` are episodes that ran to their end, of which nothing judged `unknown`, `failed` those that crashed (`errors`
    counts them by kind), `left` those without a row.  `cost` is the sum of what is known, in US dollars, repeated
    attempts included; of `unpriced` attempts it is not known.
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

    def lines(self) -> list[str]:
        """The state in sentences, one a line; crashes first."""
        crashes = ", ".join(f"{n} x {kind}" for kind, n in self.errors.items())
        told = [f"failed: {crashes} (--retry-failed)"] if crashes else []
        known = f"${self.cost:.4g}" if self.cost or not self.unpriced else "not known"
        more = f" and {self.unpriced} episodes of unknown cost" if self.cost and self.unpriced else ""
        unknown = f" ({self.unknown} not judged)" if self.unknown else ""
        ended = f"{self.done} of {self.planned} episodes done{unknown}, {self.failed} failed, {self.left} left"
        told.append(f"{ended}; cost so far {known}{more}")
        again = "; run the same command again to go on" if self.left else ""
        return [*told, "a process is running it" if self.running else f"nothing is running{again}"]


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
    )
