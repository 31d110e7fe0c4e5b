"""How a running study shows itself: a bar where somebody watches, one line an episode where nobody does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from rlm_loop.study.plan.grid import Episode
from rlm_loop.study.store.rows import Row, finished


class Progress(Protocol):
    """What the runner tells."""

    def begin(self, episode: Episode) -> None: ...
    def end(self, row: Row) -> None: ...
    def close(self) -> None: ...


class Tally:
    """How many episodes have a row, and how many of those that were judged are resolved."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.done = self.judged = self.resolved = 0
        for row in rows:
            self.end(row)

    def end(self, row: Row) -> None:
        self.done += 1
        self.judged += row["resolved"] is not None
        self.resolved += bool(row["resolved"])

    def __str__(self) -> str:
        return f"{self.resolved} of {self.judged} resolved"


def describe(row: Mapping[str, Any]) -> str:
    """One finished or crashed episode in a few words."""
    where = f"{row['arm']} on {row['suite']}/{row['task']}" + (f", seed {row['seed']}" if row["seed"] else "")
    if not finished(row):
        return f"{where}: crashed, {row['error']}"
    tokens = (row["input_tokens"] or 0) + (row["output_tokens"] or 0)
    verdict = "resolved" if row["resolved"] else f"not resolved ({row['stop']})"
    if row["resolved"] is None:
        verdict = f"not judged ({row.get('scorer_error') or row['stop']})"
    return f"{where}: {verdict}, {row['steps']} turns, {tokens:,} tokens, {row['seconds']:.0f} s"


class Silent:
    """Says nothing."""

    def begin(self, episode: Episode) -> None:
        pass

    def end(self, row: Row) -> None:
        pass

    def close(self) -> None:
        pass


class Lines(Silent):
    """One line an episode, for logs and pipes."""

    def __init__(self, tally: Tally, planned: int, write: Callable[[str], None]) -> None:
        self._tally, self._planned, self._write = tally, planned, write

    def end(self, row: Row) -> None:
        self._tally.end(row)
        self._write(f"[{self._tally.done}/{self._planned}] {describe(row)}; {self._tally}")


class Bar:
    """A tqdm bar (a widget in a notebook); crashes are written above it, since they ask for attention."""

    def __init__(self, tally: Tally, planned: int, name: str) -> None:
        from tqdm.auto import tqdm

        self._tally = tally
        shape = "{desc} {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"
        self._bar = tqdm(total=planned, initial=tally.done, desc=name, bar_format=shape, dynamic_ncols=True)
        self._bar.set_postfix_str(str(tally))

    def begin(self, episode: Episode) -> None:
        self._bar.set_postfix_str(f"{self._tally}, now {episode.arm} on {episode.task.id}")

    def end(self, row: Row) -> None:
        self._tally.end(row)
        if not finished(row):
            self._bar.write(describe(row), file=sys.stderr)
        self._bar.set_postfix_str(str(self._tally), refresh=False)
        self._bar.update(1)

    def close(self) -> None:
        self._bar.close()


def watching() -> bool:
    """Somebody sees a bar: standard error is a terminal, or this is a notebook."""
    return sys.stderr.isatty() or _in_notebook()


def _in_notebook() -> bool:
    """This process is a kernel; that ipykernel is imported does not say so."""
    ipython: Any = sys.modules.get("IPython")
    return getattr(ipython.get_ipython() if ipython is not None else None, "kernel", None) is not None


def to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
