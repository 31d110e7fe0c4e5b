"""The figure of resolve rates with their intervals: over all tasks, or by suite, level, size ..."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures.rows import Arm, Arms, arms_of, factors_of
from rlm_loop.report.figures.style import PAGE, SMALL, caption, finish, marks, percent_axis, sheet, style
from rlm_loop.study.compare import pairs
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Rate:
    """How many of those judged were resolved, and the ends of Wilson's interval as shares, by cluster."""

    resolved: int
    judged: int
    low: float
    high: float

    @property
    def percent(self) -> float | None:
        """The rate; `None` where nothing was judged."""
        return 100 * self.resolved / self.judged if self.judged else None

    @property
    def interval(self) -> tuple[float, float]:
        return 100 * self.low, 100 * self.high

    @property
    def bars(self) -> list[list[float]]:
        """The interval as matplotlib wants it: how far down, how far up."""
        middle, (low, high) = self.percent or 0.0, self.interval
        return [[middle - low], [high - middle]]

    def __str__(self) -> str:
        if self.percent is None:
            return "none judged"
        low, high = self.interval
        return f"{self.resolved} of {self.judged} ({self.percent:.0f} %, interval {low:.0f} to {high:.0f})"


def rate_of(rows: Iterable[Mapping[str, Any]]) -> Rate:
    """The rate of the rows of one arm, or of several levels of a factor: rows of one task count as one cluster."""
    return Rate(*pairs.rate_of([dict(r) for r in rows]))


def resolve_rates(
    results: Results | pd.DataFrame, *, arms: Iterable[str] | None = None, by: str | None = None
) -> Figure:
    """The share of tasks that each arm resolved, with 95 % Wilson intervals and the counts written out.

    `results` are a study's, or its `frame()`.  `by` is a column, fact or factor (`suite`, `level`, `size` ...): each of
    its values then is a group of its own, below that of all tasks.  Tasks that nothing judged are not counted.  Raises
    `StudyError` where there is nothing to draw, or matplotlib is missing.
    """
    found = arms_of(results, arms)
    groups = _groups(found, by)
    drawn = marks([a.label for a in found.arms])
    lines = [(group, arm, rate_of(arm.rows.values())) for group, of in groups for arm in of]
    with style():
        made = sheet(PAGE, 1.2 + 0.27 * len(lines) + 0.3 * len(groups))
        axes: Any = made.subplots()
        place, last, ticks = -0.4, None, list[tuple[float, str]]()
        for group, arm, rate in lines:
            if group != last:
                place += 0.4
                if by:
                    axes.text(0.0, place, group, fontsize=SMALL, fontweight="bold", va="center")
                    place += 0.9
                last = group
            mark = drawn[arm.label]
            if rate.percent is not None:
                look = {"color": mark.colour, "markeredgecolor": "white", "markersize": 6, "capsize": 3}
                axes.errorbar(rate.percent, place, xerr=rate.bars, fmt=mark.marker, clip_on=False, zorder=3, **look)
            count = f"{rate.resolved}/{rate.judged}" if rate.judged else "-"
            axes.annotate(count, (1.01, place), xycoords=("axes fraction", "data"), fontsize=SMALL, va="center")
            ticks.append((place, arm.label))
            place += 1
        axes.set_yticks([at for at, _ in ticks], [name for _, name in ticks])
        axes.set_ylim(place - 0.3, -0.7)
        axes.set_xlim(0, 100)
        axes.tick_params(axis="y", length=0, labelcolor="black", pad=7)  # a mark at 0 % hides no name
        percent_axis(axes.xaxis)
        finish(axes, "Tasks resolved", grid="x")
        caption(made, f"{found.note()}. Bars are 95 % Wilson intervals, each arm for itself; for a difference between "
                "arms look at the paired ones.")  # fmt: skip
    said = "; ".join(f"{f'{group}, ' if by else ''}{arm.label}: {rate}" for group, arm, rate in lines)
    made.set_label(f"Share of tasks resolved by each arm, with 95 % intervals. {said}.")
    return made


def _groups(found: Arms, by: str | None) -> list[tuple[str, Sequence[Arm]]]:
    everything: list[tuple[str, Sequence[Arm]]] = [("all tasks", found.arms)]
    if by is None:
        return everything
    values = {_value_of(r, by) for a in found.arms for r in a.rows.values()} - {None}
    if not values:
        raise StudyError(f"no row has a {by}; use a column, fact or factor of the study, such as suite or level")
    for value in sorted(values, key=lambda v: (isinstance(v, str), v)):
        parts = [
            Arm(a.name, a.model, a.label, {u: r for u, r in a.rows.items() if _value_of(r, by) == value})
            for a in found.arms
        ]
        everything.append((value if isinstance(value, str) else f"{by} {value:,}", [a for a in parts if a.rows]))
    return everything


def _value_of(row: Mapping[str, Any], column: str) -> Any:
    """A column of a row, or one of its factors or facts by that name."""
    places = row, factors_of(row), row.get("facts") or {}
    return next((place[column] for place in places if column in place), None)
