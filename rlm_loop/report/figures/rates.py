"""Figures of resolve rates: with their intervals, against tokens, and by the values of a factor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rlm_loop.report.figures.rows import Arm, Ends, Rate, arms_of
from rlm_loop.report.figures.style import (
    GREY,
    PAGE,
    PERCENT,
    SMALL,
    ArmStyle,
    finish,
    marks,
    panels,
    style,
    whiskers,
)
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def resolve_rates(
    results: Results | pd.DataFrame, axes: Any = None, *, by_suite: bool = False, intervals: bool = True
) -> Figure:
    """The share of tasks that each arm resolved, with 95 % Wilson intervals and the counts written out.

    `results` are a study's, or its `frame()`; `axes` of matplotlib are drawn in instead of a new figure.  With
    `by_suite` each suite is a group of its own, below that of all tasks.  Without `intervals` no arm has one of its
    own, as is right beside paired differences.  Tasks that nothing judged are not counted.  Raises `StudyError` where
    there is nothing to draw, or matplotlib is missing.
    """
    found = arms_of(results)
    groups = {"all tasks": found.arms}
    for suite in sorted({r["suite"] for a in found.arms for r in a.rows}) if by_suite else ():
        parts = [replace(a, rows=[r for r in a.rows if r["suite"] == suite]) for a in found.arms]
        groups[suite] = [a for a in parts if a.rows]
    drawn = marks([a.label for a in found.arms])
    ticks: dict[float, str] = {}
    place = -0.4
    with style():
        made = panels(axes, [[0]], 1.2 + 0.27 * sum(map(len, groups.values())) + 0.3 * len(groups))
        (axes,) = made.axes
        for group, of in groups.items():
            place += 0.4
            if by_suite:
                axes.text(0.0, place, group, fontsize=SMALL, fontweight="bold", va="center")
                place += 0.9
            for arm in of:
                _rate(axes, place, arm.rate, drawn[arm.label], intervals)
                ticks[place] = arm.label
                place += 1
        axes.set_yticks(list(ticks), list(ticks.values()))
        axes.set_ylim(place - 0.3, -0.7)
        axes.set_xlim(0, 100)
        axes.tick_params(axis="y", length=0, labelcolor="black", pad=7)  # a mark at 0 % hides no name
        axes.xaxis.set_major_formatter(PERCENT)
        finish(axes, "Tasks resolved", grid="x")
        named = [(f"{group}, " if by_suite else "", arm) for group, of in groups.items() for arm in of]
        said = "; ".join(f"{group}{arm.label}: {arm.rate.text(intervals)}" for group, arm in named)
        bars = " Bars are 95 % Wilson intervals, each arm for itself; for a difference look at the paired ones."
        words = f"Share of tasks resolved by each arm{', with 95 % intervals' if intervals else ''}. {said}."
        return made.finished(words, f"{found.note()}.{bars if intervals else ''}")


def _rate(axes: Any, place: float, rate: Rate, mark: ArmStyle, interval: bool) -> None:
    if rate.percent is not None:
        look = {"color": mark.colour, "markeredgecolor": "white", "markersize": 6, "capsize": 3}
        bars = whiskers([rate.percent]) if interval else None
        axes.errorbar(rate.percent[0], place, xerr=bars, fmt=mark.marker, clip_on=False, zorder=3, **look)
    count = f"{rate.resolved}/{rate.judged}" if rate.judged else "-"
    axes.annotate(count, (1.01, place), xycoords=("axes fraction", "data"), fontsize=SMALL, va="center")


class _Point(NamedTuple):
    """An arm with what a task takes, and the percentage that it resolves."""

    arm: Arm
    tokens: Ends
    percent: Ends

    def beats(self, other: _Point) -> bool:
        here, there = (self.percent[0], -self.tokens[0]), (other.percent[0], -other.tokens[0])
        return here != there and here[0] >= there[0] and here[1] >= there[1]


def resolve_against_tokens(results: Results | pd.DataFrame, axes: Any = None, *, intervals: bool = True) -> Figure:
    """Resolve rate against the tokens of a task; the line is the Pareto front, arms off it are hollow.

    An arm is on the front if no other arm resolves at least as much for at most as many tokens, and is better in one of
    the two.  It is a statement about these points, not a test.  The arguments, and errors, are as in `resolve_rates`.
    """
    found = arms_of(results)
    points = [_Point(a, a.tokens, a.rate.percent) for a in found.arms if a.tokens and a.rate.percent]
    if not points:
        raise StudyError("no arm has the tokens of every task and a judged one, so there is nothing to draw")
    front = [p for p in points if not any(other.beats(p) for other in points)]
    front.sort(key=lambda p: (p.tokens, p.percent))
    drawn = marks([a.label for a in found.arms])
    note = f"{found.note()}. Filled: on the Pareto front, no other arm resolves as much for less. Hollow: off it."
    note += " Bars are 95 % intervals of each arm (Wilson, bootstrap of the mean)." if intervals else ""
    with style():
        made = panels(axes, [[0]], 3.9, PAGE * 0.86)
        (axes,) = made.axes
        axes.yaxis.set_major_formatter(PERCENT)
        for point in points:
            _draw(axes, point, drawn[point.arm.label], point in front, intervals)
        at, rates = [p.tokens[0] for p in front], [p.percent[0] for p in front]
        look: dict[str, Any] = {"color": GREY, "linewidth": 1.1, "linestyle": (0, (6, 2)), "zorder": 1}
        axes.step([*at, at[-1] * 100], [*rates, rates[-1]], where="post", label="Pareto front", **look)
        _limits(axes, points)
        finish(axes, "Tasks resolved, and their tokens (in + out)", "tokens (in + out) a task, mean")
        said = "; ".join(f"{p.arm.label}: {p.arm.rate.text(intervals)}, {_spent(p.arm)}" for p in points)
        words = f"Resolve rate against tokens (in + out) a task. {said}. On the Pareto front: "
        words += f"{', '.join(p.arm.label for p in front)}."
        return made.finished(words, note, axes.get_legend_handles_labels()[0])


def _draw(axes: Any, point: _Point, mark: ArmStyle, best: bool, intervals: bool) -> None:
    spread = {"xerr": whiskers([point.tokens]), "yerr": whiskers([point.percent])}
    axes.errorbar(
        point.tokens[0],
        point.percent[0],
        **(spread if intervals else {}),
        fmt=mark.marker,
        color=mark.colour,
        markersize=7.5,
        markerfacecolor=mark.colour if best else "white",
        markeredgecolor="white" if best else mark.colour,
        markeredgewidth=0.6 if best else 1.4,
        capsize=2.5,
        zorder=3,
        clip_on=False,
        label=f"{point.arm.label}  {point.arm.rate.resolved}/{point.arm.rate.judged}",
    )


def _limits(axes: Any, points: Sequence[_Point]) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = min(p.tokens[1] for p in points), max(p.tokens[2] for p in points)
    if low > 0 and high / low > 5:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.3, high * 1.9)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=8))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        spread = high - low or high or 1.0
        axes.set_xlim(max(0.0, low - 0.3 * spread), high + 0.45 * spread)
    axes.xaxis.set_major_formatter("{x:,.10g}")
    axes.set_ylim(0, min(100, 10 * math.ceil(0.105 * max(p.percent[2] for p in points) + 0.5)))


def factor_response(
    results: Results | pd.DataFrame, factor: str | None = None, axes: Any = None, *, intervals: bool = True
) -> Figure:
    """Two panels by the values of a factor, a line for each base arm; other factors are pooled.

    `axes` are two of matplotlib, `intervals` as in `resolve_rates`.  Raises `StudyError` where the factor is not there,
    has one value only, or has to be named.
    """
    found = arms_of(results)
    every = [r for a in found.arms for r in a.rows]
    known = list(dict.fromkeys(name for r in every for name in _factors(r)))
    if factor is None and len(known) > 1:
        raise StudyError(f"the study has the factors {', '.join(known)}; choose one: factor={known[0]!r}")
    chosen = factor or next(iter(known), "")
    if chosen not in known:
        raise StudyError(f"there is no factor {chosen!r}; there are {', '.join(known) or 'none'}")
    values = list(dict.fromkeys(_factors(r)[chosen] for r in every if chosen in _factors(r)))
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        values.sort()
    if len(values) < 2:
        raise StudyError(f"the factor {chosen} has one value only, so there is no response to draw")
    lines: dict[str, list[Arm]] = {}
    for name in dict.fromkeys(_base(r, found.models) for r in every):
        of = {v: [r for r in every if (_base(r, found.models), _factors(r).get(chosen)) == (name, v)] for v in values}
        lines[name] = [Arm(f"{name}, {chosen} {v}", rows) for v, rows in of.items()]
    drawn = marks(list(lines))
    with style():
        made = panels(axes, [[0, 1]], 3.4)
        left, right = made.axes
        for number, (name, points) in enumerate(lines.items()):
            shift = 0.06 * (number - (len(lines) - 1) / 2)
            _line(left, shift, [p.rate.percent for p in points], drawn[name], intervals, name)
            _line(right, shift, [p.tokens for p in points], drawn[name], intervals)
        for axes, title in ((left, "a   Tasks resolved"), (right, "b   Tokens (in + out) a task")):
            axes.set_xticks(range(len(values)), [str(v) for v in values])
            axes.set_xlim(-0.4, len(values) - 0.6)
            finish(axes, title, chosen.replace("_", " "))
        left.set_ylim(0, 100)
        left.yaxis.set_major_formatter(PERCENT)
        right.set_ylim(0, None)
        right.yaxis.set_major_formatter("{x:,.0f}")
        pooled = [f for f in known if f != chosen]
        note = f"{found.note()}." + (f" Pooled over {', '.join(pooled)}." if pooled else "")
        note += " Bars: 95 % intervals by task (Wilson; bootstrap of the mean)." if intervals else ""
        every = [p for points in lines.values() for p in points if p.rows]
        said = "; ".join(f"{p.label}: {p.rate.text(intervals)}, {_spent(p)}" for p in every)
        words = f"Resolve rate and tokens (in + out) a task by {chosen.replace('_', ' ')}. {said}."
        return made.finished(words, note, left.get_legend_handles_labels()[0])


def _factors(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The ablation factors of a row, values that are lists as text; none where the study has none."""
    found: Mapping[str, Any] = row.get("factors") or {}
    return {k: v if isinstance(v, str | int | float | bool | None) else str(v) for k, v in found.items()}


def _base(row: Mapping[str, Any], models: Sequence[str]) -> str:
    """The arm without its factors, and the model where there are several."""
    base = str(row.get("arm_base") or row["arm"])
    return f"{base}, {row['model']}" if len(models) > 1 else base


def _spent(point: Arm) -> str:
    return "tokens not known" if point.tokens is None else f"{point.tokens[0]:,.0f} tokens"


def _line(
    axes: Any, shift: float, found: Sequence[Ends | None], mark: ArmStyle, intervals: bool, name: str = ""
) -> None:
    """The known of a line's points, each with the low and the high end of its interval."""
    known = {place + shift: of for place, of in enumerate(found) if of is not None}
    look = {"color": mark.colour, "marker": mark.marker, "linestyle": mark.line, "markeredgecolor": "white"}
    bars = whiskers(list(known.values())) if intervals else None
    axes.errorbar(list(known), [of[0] for of in known.values()], yerr=bars, label=name or None, capsize=3, **look)
