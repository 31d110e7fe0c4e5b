"""The figure of resolve rates against tokens, with the arms that no other beats at both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures.rates import Rate, rate_of
from rlm_loop.report.figures.rows import Arm, Measure, arms_of, mean_between, measure_of
from rlm_loop.report.figures.style import (
    GREY,
    PAGE,
    ArmStyle,
    caption,
    finish,
    legend_above,
    marks,
    percent_axis,
    sheet,
    style,
)
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_LEGEND = "Filled: on the Pareto front, no other arm resolves as much for less. Hollow: off it."


@dataclass(frozen=True)
class _Point:
    """One arm: the mean of what a task takes, its 95 % bootstrap interval, and what the arm resolves."""

    label: str
    rate: Rate
    spent: float
    low: float
    high: float

    def beats(self, other: _Point) -> bool:
        here, there = self.rate.percent or 0.0, other.rate.percent or 0.0
        return here >= there and self.spent <= other.spent and (here > there or self.spent < other.spent)


def resolve_against_tokens(
    results: Results | pd.DataFrame,
    *,
    arms: Iterable[str] | None = None,
    measure: str = "total_tokens",
    intervals: bool = True,
) -> Figure:
    """Resolve rate against what a task takes; the line is the Pareto front, arms off it are hollow.

    An arm is on the front if no other arm resolves at least as much for at most as many tokens, and is better in one of
    the two.  It is a statement about these points, not a test.  `results` are a study's, or its `frame()`; `measure` is
    `total_tokens` (in and out), `input_tokens`, `cost`, `seconds`, `steps` ...; without `intervals` no arm has one of
    its own, as is right beside paired differences.  Raises `StudyError` where there is nothing to draw, or matplotlib
    is missing.
    """
    found, asked = arms_of(results, arms), measure_of(measure)
    points = [p for arm in found.arms if (p := _point(arm, asked)) is not None]
    if not points:
        raise StudyError(f"no arm has {asked.name} of every task and a judged one, so there is nothing to draw")
    front = [p for p in points if not any(other.beats(p) for other in points)]
    front.sort(key=lambda p: (p.spent, p.rate.percent or 0.0))
    drawn = marks([a.label for a in found.arms])
    bars = " Bars are 95 % intervals of each arm (Wilson, bootstrap of the mean)." if intervals else ""
    with style():
        made = sheet(PAGE * 0.86, 3.9)
        axes: Any = made.subplots()
        percent_axis(axes.yaxis)
        for point in points:
            _draw(axes, point, drawn[point.label], point in front, intervals)
        at, rates = [p.spent for p in front], [p.rate.percent or 0.0 for p in front]
        look: dict[str, Any] = {"color": GREY, "linewidth": 1.1, "linestyle": (0, (6, 2)), "zorder": 1}
        axes.step([*at, at[-1] * 100], [*rates, rates[-1]], where="post", label="Pareto front", **look)
        _limits(axes, points)
        finish(axes, f"Tasks resolved, and their {asked.name}", f"{asked.name} a task, mean")
        legend_above(made, axes.get_legend_handles_labels()[0])
        caption(made, f"{found.note()}. {_LEGEND}{bars}")
    said = "; ".join(f"{p.label}: {p.rate}, {asked.say(p.spent)} a task" for p in points)
    on = f"On the Pareto front: {', '.join(p.label for p in front)}."
    made.set_label(f"Resolve rate against {asked.name} a task. {said}. {on}")
    return made


def _point(arm: Arm, asked: Measure) -> _Point | None:
    """The arm if it was judged, and the measure is known of every task."""
    taken, rate = asked.values(arm.rows.values()), rate_of(arm.rows.values())
    whole = taken and len(taken) == len(arm.rows) and rate.judged
    return _Point(arm.label, rate, *mean_between(taken)) if whole else None


def _draw(axes: Any, point: _Point, mark: ArmStyle, best: bool, intervals: bool) -> None:
    spread = {"xerr": [[point.spent - point.low], [point.high - point.spent]], "yerr": point.rate.bars}
    axes.errorbar(
        point.spent,
        point.rate.percent or 0.0,
        **(spread if intervals else {}),
        fmt=mark.marker,
        color=mark.colour,
        markersize=7.5,
        markerfacecolor=mark.colour if best else "white",
        markeredgecolor="white" if best else mark.colour,
        markeredgewidth=0.6 if best else 1.4,
        elinewidth=1.0,
        capsize=2.5,
        zorder=3,
        clip_on=False,
        label=f"{point.label}  {point.rate.resolved}/{point.rate.judged}",
    )


def _limits(axes: Any, points: Sequence[_Point]) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = min(p.low for p in points), max(p.high for p in points)
    if low > 0 and high / low > 5:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.3, high * 1.9)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=8))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        spread = high - low or high or 1.0
        axes.set_xlim(max(0.0, low - 0.3 * spread), high + 0.45 * spread)
    axes.xaxis.set_major_formatter("{x:,.10g}")
    axes.set_ylim(0, min(100, 10 * math.ceil(0.105 * max(p.rate.interval[1] for p in points) + 0.5)))
