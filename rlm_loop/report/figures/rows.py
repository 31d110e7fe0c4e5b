"""The rows of a study as figures need them: by arm, on the pairs of task and seed that every arm was tried on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from rlm_loop.study import statistics
from rlm_loop.study.compare import pairs
from rlm_loop.study.compare.pair_keys import by_episode
from rlm_loop.study.compare.summary import total_tokens
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results
from rlm_loop.study.store.rows import Row

if TYPE_CHECKING:
    import pandas as pd

_NEEDED = ("arm", "model", "suite", "task", "seed", "resolved")

Ends = tuple[float, float, float]
"""A value with the low and the high end of its 95 % interval."""


class Rate(NamedTuple):
    """Count how many of those judged were resolved, and the ends of Wilson's interval as shares, by cluster."""

    resolved: int
    judged: int
    low: float
    high: float

    @property
    def percent(self) -> Ends | None:
        """The rate with its interval; `None` where nothing was judged."""
        return (100 * self.resolved / self.judged, 100 * self.low, 100 * self.high) if self.judged else None

    def text(self, interval: bool = True) -> str:
        """Return the count and the rate in words, with the 95 % interval or without."""
        if self.percent is None:
            return "none judged"
        share, low, high = self.percent
        ends = f", interval {low:.0f} to {high:.0f}" if interval else ""
        return f"{self.resolved} of {self.judged} ({share:.0f} %{ends})"


@dataclass(frozen=True)
class Arm:
    """An arm with one model, or one value of a factor, and its rows."""

    label: str
    rows: Sequence[Row]

    @cached_property
    def rate(self) -> Rate:
        return Rate(*pairs.rate_of(self.rows))

    @cached_property
    def tokens(self) -> Ends | None:
        """The mean tokens of an episode, in and out, the bootstrap by task; `None` where one is not known."""
        by_task: dict[tuple[str, str], list[float]] = {}
        for row in self.rows:
            if (tokens := total_tokens(row)) is None:
                return None
            by_task.setdefault((row["suite"], row["task"]), []).append(tokens)
        if not by_task:
            return None
        middle = sum(map(sum, by_task.values())) / len(self.rows)
        low, high = statistics.bootstrap([sum(of) / len(of) for of in by_task.values()]) or (middle, middle)
        return middle, min(low, middle), max(high, middle)


@dataclass(frozen=True)
class Arms:
    """`left_out` counts the pairs that are not there because an arm was not tried on them yet."""

    arms: Sequence[Arm]
    models: Sequence[str]
    left_out: int

    def note(self) -> str:
        """Say which model, how many tasks, and how many are left out: the beginning of a caption."""
        sizes = sorted({len(a.rows) for a in self.arms})
        many = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        seeds = {r["seed"] for a in self.arms for r in a.rows}
        what = "tasks" if len(seeds) < 2 else f"tasks x seeds ({len(seeds)} seeds)"
        left = f"; {self.left_out} left out, since not every arm was tried on them" if self.left_out else ""
        models = "".join(f"{model}, " for model in self.models if model)
        return f"{models}{many} {what} an arm, every arm on the same{left}"


def arms_of(results: Results | pd.DataFrame) -> Arms:
    """The arms of results or of their `frame()`, on the pairs that every arm was tried on.

    They are in the order of the study, or of their first row in a frame.  Where there are several models, each arm is
    there once a model.  Raises `StudyError` where a column is missing, for a pair with two rows, and where there is no
    pair that every arm was tried on.
    """
    found = results_of(results)
    by_episode(found.rows)  # an episode with two rows is told here
    there: list[Arm] = []
    for model in found.models:
        for arm in found.arms:
            rows = [r for r in found.complete_pairs if (r["arm"], r["model"]) == (arm, model)]
            there.append(Arm(f"{arm}, {model}" if len(found.models) > 1 else arm, rows))
    if not found.complete_pairs:
        raise StudyError("there is no task that every arm was tried on, so there is nothing to draw yet")
    return Arms(there, found.models, found.left_out)


def results_of(results: Results | pd.DataFrame) -> Results:
    """Results, made of a frame where that is given: `None` stands for NaN.  Raises `StudyError` without a column."""
    if isinstance(results, Results):
        return results
    if missing := [c for c in _NEEDED if c not in results.columns]:
        raise StudyError(f"the frame has no column {', '.join(missing)}; give results.frame() of a study")
    rows: list[Row] = []
    for row in results.to_dict("records"):
        known = {str(name): None if isinstance(v, float) and v != v else v for name, v in row.items()}
        rows.append({"error": None, **known})
    return Results(rows)
