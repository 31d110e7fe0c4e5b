"""What the arms resolve for their tokens, and which of them no other beats at both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures.cells import Arm, Measure, cells, mean_between, measure_of
from rlm_loop.report.figures.rates import Rate, rate_of
from rlm_loop.report.figures.style import (
    GREY,
    PAGE,
    SMALL,
    ArmStyle,
    caption,
    finish,
    legend_above,
    marks,
    percent_axis,
    round_ticks,
    sheet,
    style,
)
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


#: What the bars and marks of the panel mean.
LEGEND = (
    "Bars are 95 % intervals (Wilson, bootstrap of the mean). Filled: on the Pareto front, no other arm resolves as "
    "much for less. Hollow: off it."
)


@dataclass(frozen=True)
class Point:
    """One arm: the mean of what a task takes, its 95 % bootstrap interval, and what the arm resolves."""

    label: str
    spent: float
    low: float
    high: float
    rate: Rate


def resolve_against_tokens(
    results: Results | pd.DataFrame, *, arms: Iterable[str] | None = None, measure: str = "total_tokens"
) -> Figure:
    """Resolve rate against what a task takes; the line is the Pareto front, arms off it are hollow.

    An arm is on the front if no other arm resolves at least as much for at most as many tokens, and is better in one of
    the two.  It is a statement about these points, not a test.  `results` are a study's, or its `frame()`; `measure` is
    `total_tokens` (in and out), `input_tokens`, `cost`, `seconds`, `steps` ... Raises `StudyError` where there is
    nothing to draw, or matplotlib is missing.
    """
    found, asked = cells(results, arms), measure_of(measure)
    points = points_of(found.arms, measure)
    if not points:
        raise StudyError(f"no arm has {asked.name} of every task and a judged one, so there is nothing to draw")
    drawn = marks([a.label for a in found.arms])
    with style():
        made = sheet(PAGE * 0.86, 3.9)
        axes: Any = made.subplots()
        panel(axes, points, drawn, asked)
        finish(axes, f"Tasks resolved, and their {asked.name}", f"{asked.name} a task, mean")
        legend_above(made, axes.get_legend_handles_labels()[0])
        caption(made, f"{found.note()}. {LEGEND}")
    made.set_label(f"Resolve rate against {asked.name} a task. {text(points, asked)}")
    return made


def points_of(arms: Sequence[Arm], measure: str) -> list[Point]:
    """The arms that were judged, and of which the measure is known of every task."""
    return [p for arm in arms if (p := _point(arm, measure)) is not None]


def panel(axes: Any, points: Sequence[Point], drawn: Mapping[str, ArmStyle], asked: Measure) -> None:
    """Draw the points and their Pareto front."""
    percent_axis(axes.yaxis)
    if not points:
        axes.set_ylim(0, 100)
        return
    best = front(points)
    _steps(axes, best)
    for point in points:
        _draw(axes, point, drawn[point.label], point in best)
    low, high = min(p.low for p in points), max(p.high for p in points)
    if low > 0 and high / low > 5:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.3, high * 1.9)
        round_ticks(axes.xaxis, low / 1.3, high * 1.9, asked.tick)
    else:
        spread = high - low or high or 1.0
        axes.set_xlim(max(0.0, low - 0.3 * spread), high + 0.45 * spread)
        axes.xaxis.set_major_formatter(asked.tick)
    axes.set_ylim(0, min(100, 10 * math.ceil(0.105 * max(p.rate.interval[1] for p in points) + 0.5)))


def text(points: Sequence[Point], asked: Measure) -> str:
    """What the panel shows, in words."""
    said = "; ".join(f"{p.label}: {p.rate}, {asked.say(p.spent)} a task" for p in points)
    return f"{said}. On the Pareto front: {', '.join(p.label for p in front(points))}."


def front(points: Sequence[Point]) -> list[Point]:
    """Those that no other beats, from the cheapest on."""
    kept = [p for p in points if not any(_beats(other, p) for other in points)]
    return sorted(kept, key=lambda p: (p.spent, p.rate.percent or 0.0))


def _beats(one: Point, other: Point) -> bool:
    here, there = one.rate.percent or 0.0, other.rate.percent or 0.0
    return here >= there and one.spent <= other.spent and (here > there or one.spent < other.spent)


def _point(arm: Arm, measure: str) -> Point | None:
    taken = list(measure_of(measure).values(arm).values())
    if len(taken) < len(arm.rows) or not taken or not arm.judged:
        return None
    return Point(arm.label, *mean_between(taken), rate_of(arm))


def _draw(axes: Any, point: Point, mark: ArmStyle, best: bool) -> None:
    y = point.rate.percent or 0.0
    axes.errorbar(
        point.spent,
        y,
        xerr=[[point.spent - point.low], [point.high - point.spent]],
        yerr=point.rate.bars,
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


def _steps(axes: Any, best: Sequence[Point]) -> None:
    at = [p.spent for p in best]
    rates = [p.rate.percent or 0.0 for p in best]
    look = {"color": GREY, "linewidth": 1.1, "linestyle": (0, (6, 2)), "zorder": 1}
    axes.step([*at, at[-1] * 100], [*rates, rates[-1]], where="post", **look)
    axes.annotate("Pareto front", (1.0, rates[-1]), xycoords=("axes fraction", "data"), xytext=(-2, 3),
                  textcoords="offset points", ha="right", fontsize=SMALL, color=GREY, fontstyle="italic")  # fmt: skip
