"""The progress of a running study: a bar where somebody watches, one line an episode where nobody does."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from rlm_loop.study.store.rows import Row, finished


class Tally:
    """Count of the episodes that have a row, and of those that were judged and resolved.  It shows nothing."""

    def __init__(self, rows: Iterable[Row], planned: int) -> None:
        self.planned = planned
        self.done = self.judged = self.resolved = 0
        for row in rows:
            self._count(row)

    def end(self, row: Row) -> None:
        """Hear that an episode has its row."""

    def close(self) -> None:
        """Hear that the run is over."""

    def _count(self, row: Row) -> None:
        self.done += 1
        self.judged += row["resolved"] is not None
        self.resolved += bool(row["resolved"])

    def __str__(self) -> str:
        return f"{self.resolved} of {self.judged} resolved"


class Lines(Tally):
    """A line for each episode on standard error, for logs and pipes."""

    def end(self, row: Row) -> None:
        """Write the line of the episode."""
        self._count(row)
        to_stderr(f"[{self.done}/{self.planned}] {describe(row)}; {self}")


class Bar(Tally):
    """A tqdm bar (a widget in a notebook); crashes are written above it, since they ask for attention."""

    def __init__(self, rows: Iterable[Row], planned: int) -> None:
        from tqdm.auto import tqdm

        super().__init__(rows, planned)
        shape = "{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"
        self._bar = tqdm(total=planned, initial=self.done, bar_format=shape, dynamic_ncols=True)

    def end(self, row: Row) -> None:
        """Move the bar on."""
        self._count(row)
        if not finished(row):
            self._bar.write(describe(row), file=sys.stderr)
        self._bar.set_postfix_str(str(self), refresh=False)
        self._bar.update(1)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.close()


def progress_of(wanted: bool, rows: Iterable[Row], planned: int) -> Tally:
    """Return a bar on a terminal or in a notebook, else lines; a silent count where nothing is `wanted`.

    A study that goes on first says what is left.
    """
    ipython: Any = sys.modules.get("IPython")
    in_notebook = getattr(ipython and ipython.get_ipython(), "kernel", None) is not None
    kind = Tally if not wanted else Bar if in_notebook or sys.stderr.isatty() else Lines
    tally = kind(rows, planned)
    if wanted and tally.done:
        to_stderr(f"going on: {tally.done} of {planned} episodes are there, {planned - tally.done} are left")
    return tally


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
