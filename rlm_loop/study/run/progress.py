"""How a running study shows itself: a bar where somebody watches, one line an episode where nobody does."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from rlm_loop.study.plan.grid import Episode
from rlm_loop.study.statistics.descriptive import mean
from rlm_loop.study.store.rows import Row, finished


class Progress(Protocol):
    """What the runner tells."""

    def begin(self, episode: Episode) -> None: ...
    def end(self, row: Row) -> None: ...
    def close(self) -> None: ...


class Forecast:
    """How long the rest takes: each arm's mean seconds so far, times the episodes of it that are left.

    An arm without a finished episode is taken to be as slow as the mean of the others.  With `jobs`, that many episodes
    run at a time, and an episode's seconds are those of a machine that it shares.
    """

    def __init__(self, left: Iterable[Episode], rows: Iterable[Row], jobs: int = 1) -> None:
        self._jobs = jobs
        self._left = Counter(episode.arm for episode in left)
        self._seconds: dict[str, list[float]] = {}
        self.resolved = self.done = self.unknown = 0
        for row in rows:
            self._learn(row)

    def _learn(self, row: Row) -> None:
        self.done += 1
        self.resolved += bool(row["resolved"])
        self.unknown += row["resolved"] is None
        if finished(row):
            self._seconds.setdefault(row["arm"], []).append(row["seconds"])

    def end(self, row: Row) -> None:
        self._left[row["arm"]] -= 1
        self._learn(row)

    def seconds(self) -> float | None:
        """Seconds to go; `None` while nothing is known."""
        usual = mean(s for many in self._seconds.values() for s in many)
        if usual is None:
            return None
        whole = sum(n * (mean(self._seconds.get(arm, ())) or usual) for arm, n in self._left.items())
        return whole / max(1, min(self._jobs, self._left.total()))

    def __str__(self) -> str:
        left = self.seconds()
        rest = f", about {duration(left)} left" if left else ""
        return f"{self.resolved} of {self.done - self.unknown} resolved{rest}"


def duration(seconds: float) -> str:
    """Seconds as people say them: `40 s`, `6 min`, `2 h 05 min`."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


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

    def __init__(self, forecast: Forecast, planned: int, write: Callable[[str], None]) -> None:
        self._forecast, self._planned, self._write = forecast, planned, write

    def end(self, row: Row) -> None:
        self._forecast.end(row)
        self._write(f"[{self._forecast.done}/{self._planned}] {describe(row)}; {self._forecast}")


class Bar:
    """A tqdm bar (a widget in a notebook); crashes are written above it, since they ask for attention."""

    def __init__(self, forecast: Forecast, planned: int, name: str) -> None:
        from tqdm.auto import tqdm

        self._forecast = forecast
        shape = "{desc} {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"
        self._bar = tqdm(total=planned, initial=forecast.done, desc=name, bar_format=shape, dynamic_ncols=True)
        self._bar.set_postfix_str(str(forecast))

    def begin(self, episode: Episode) -> None:
        self._bar.set_postfix_str(f"{self._forecast}, now {episode.arm} on {episode.task.id}")

    def end(self, row: Row) -> None:
        self._forecast.end(row)
        if not finished(row):
            self._bar.write(describe(row), file=sys.stderr)
        self._bar.set_postfix_str(str(self._forecast), refresh=False)
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
