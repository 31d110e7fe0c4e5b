"""Figures of resolve rates: with their intervals, against tokens, and by the values of a factor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures.rows import Arm, Arms, Measure, arms_of, factors_of, mean_between, measure_of
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
    sheet,
    style,
)
from rlm_loop.study.compare import pairs
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Rate:
    """Count how many of those judged were resolved, and the ends of Wilson's interval as shares, by cluster."""

    resolved: int
    judged: int
    low: float
    high: float

    @property
    def percent(self) -> float | None:
        """The rate; `None` where nothing was judged."""
        return 100 * self.resolved / self.judged if self.judged else None

    @property
    def bars(self) -> list[list[float]]:
        """The interval as matplotlib wants it: how far down, how far up."""
        middle = self.percent or 0.0
        return [[middle - 100 * self.low], [100 * self.high - middle]]

    def __str__(self) -> str:
        if self.percent is None:
            return "none judged"
        ends = f"{100 * self.low:.0f} to {100 * self.high:.0f}"
        return f"{self.resolved} of {self.judged} ({self.percent:.0f} %, interval {ends})"


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
        parts = [replace(a, rows={u: r for u, r in a.rows.items() if _value_of(r, by) == value}) for a in found.arms]
        everything.append((value if isinstance(value, str) else f"{by} {value:,}", [a for a in parts if a.rows]))
    return everything


def _value_of(row: Mapping[str, Any], column: str) -> Any:
    """A column of a row, or one of its factors or facts by that name."""
    places = row, factors_of(row), row.get("facts") or {}
    return next((place[column] for place in places if column in place), None)


_LEGEND = "Filled: on the Pareto front, no other arm resolves as much for less. Hollow: off it."


@dataclass(frozen=True)
class _Point:
    """An arm: the mean of what a task takes, its 95 % bootstrap interval, and what the arm resolves."""

    label: str
    rate: Rate
    spent: float
    low: float
    high: float

    @property
    def percent(self) -> float:
        return self.rate.percent or 0.0

    def beats(self, other: _Point) -> bool:
        here, there = (self.percent, -self.spent), (other.percent, -other.spent)
        return here != there and here[0] >= there[0] and here[1] >= there[1]


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
    front.sort(key=lambda p: (p.spent, p.percent))
    drawn = marks([a.label for a in found.arms])
    bars = " Bars are 95 % intervals of each arm (Wilson, bootstrap of the mean)." if intervals else ""
    with style():
        made = sheet(PAGE * 0.86, 3.9)
        axes: Any = made.subplots()
        percent_axis(axes.yaxis)
        for point in points:
            _draw(axes, point, drawn[point.label], point in front, intervals)
        at, rates = [p.spent for p in front], [p.percent for p in front]
        look: dict[str, Any] = {"color": GREY, "linewidth": 1.1, "linestyle": (0, (6, 2)), "zorder": 1}
        axes.step([*at, at[-1] * 100], [*rates, rates[-1]], where="post", label="Pareto front", **look)
        _limits(axes, points)
        finish(axes, f"Tasks resolved, and their {asked.name}", f"{asked.name} a task, mean")
        legend_above(made, axes.get_legend_handles_labels()[0])
        caption(made, f"{found.note()}. {_LEGEND}{bars}")
    said = "; ".join(f"{p.label}: {p.rate}, {asked.format.format(x=p.spent)} {asked.name} a task" for p in points)
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
        point.percent,
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
    axes.set_ylim(0, min(100, 10 * math.ceil(10.5 * max(p.rate.high for p in points) + 0.5)))


_TOKENS = measure_of("total_tokens")
_Rows = Sequence[Mapping[str, Any]]


def factor_response(results: Results | pd.DataFrame, factor: str | None = None) -> Figure:
    """Two panels by the values of a factor, a line for each base arm; other factors are pooled.

    Raises `StudyError` where the factor is not there, has one value only, or has to be named.
    """
    found = arms_of(results)
    every = [r for a in found.arms for r in a.rows.values()]
    known = list(dict.fromkeys(name for r in every for name in factors_of(r)))
    if factor is None and len(known) > 1:
        raise StudyError(f"the study has the factors {', '.join(known)}; choose one: factor={known[0]!r}")
    chosen = factor or next(iter(known), "")
    if chosen not in known:
        raise StudyError(f"there is no factor {chosen!r}; there are {', '.join(known) or 'none'}")
    values = list(dict.fromkeys(_key(r, chosen) for r in every if chosen in factors_of(r)))
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        values.sort()
    if len(values) < 2:
        raise StudyError(f"the factor {chosen} has one value only, so there is no response to draw")
    groups = _by_level(found.arms, chosen)
    drawn = marks(list(groups))
    with style():
        made = sheet(PAGE, 3.4)
        left, right = made.subplots(1, 2)
        for number, (name, of) in enumerate(groups.items()):
            at = [p + 0.06 * (number - (len(groups) - 1) / 2) for p in range(len(values))]
            rates = [rate_of(of.get(v, ())) for v in values]
            shares = [None if r.percent is None else (r.percent, 100 * r.low, 100 * r.high) for r in rates]
            _line(left, at, shares, drawn[name], name)
            _line(right, at, [_spent(of.get(v, ())) for v in values], drawn[name])
        for axes, title in ((left, "a   Tasks resolved"), (right, f"b   {_TOKENS.name.capitalize()} a task")):
            axes.set_xticks(range(len(values)), [str(v) for v in values])
            axes.set_xlim(-0.4, len(values) - 0.6)
            finish(axes, title, chosen.replace("_", " "))
        left.set_ylim(0, 100)
        percent_axis(left.yaxis)
        right.set_ylim(0, None)
        right.yaxis.set_major_formatter("{x:,.0f}")
        legend_above(made, left.get_legend_handles_labels()[0])
        pooled = [f for f in known if f != chosen]
        over = f" Pooled over {', '.join(pooled)}." if pooled else ""
        caption(made, f"{found.note()}. Bars: 95 % intervals by task (Wilson; bootstrap of the mean).{over}")
    lines = [
        f"{name}, {chosen} {value}: {rate_of(of[value])}, {_mean(of[value])}"
        for name, of in groups.items()
        for value in values
        if value in of
    ]
    made.set_label(f"Resolve rate and tokens a task by {chosen.replace('_', ' ')}. {'; '.join(lines)}.")
    return made


def _key(row: Mapping[str, Any], factor: str) -> Any:
    value = factors_of(row)[factor]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _by_level(arms: Sequence[Arm], factor: str) -> dict[str, dict[Any, list[Mapping[str, Any]]]]:
    """Rows by base arm (and model, where there are several) and value of the factor."""
    several = len({a.model for a in arms}) > 1
    found: dict[str, dict[Any, list[Mapping[str, Any]]]] = {}
    for arm in arms:
        for row in arm.rows.values():
            if factor in factors_of(row):
                base = str(row.get("arm_base") or arm.name)
                of = found.setdefault(f"{base}, {arm.model}" if several else base, {})
                of.setdefault(_key(row, factor), []).append(row)
    return found


def _spent(rows: _Rows) -> tuple[float, ...] | None:
    """The mean tokens of a task with its interval; `None` where they are not known of every row."""
    by_task: dict[tuple[str, str], list[float]] = {}  # the other factors' levels, and seeds, of one task are one
    for row in rows:
        by_task.setdefault((row["suite"], row["task"]), []).extend(_TOKENS.values([row]))
    every = [value for of in by_task.values() for value in of]
    return mean_between(every, list(by_task.values())) if every and len(every) == len(rows) else None


def _mean(rows: _Rows) -> str:
    spent = _spent(rows)
    return "tokens not known" if spent is None else f"{spent[0]:,.0f} tokens a task"


def _line(
    axes: Any, at: Sequence[float], found: Sequence[tuple[float, ...] | None], mark: ArmStyle, name: str = ""
) -> None:
    """The known of a line's points, each with the low and the high end of its interval."""
    known = [(x, *of) for x, of in zip(at, found, strict=True) if of is not None]
    bars = [[y - low for _, y, low, _ in known], [high - y for _, y, _, high in known]]
    look = {"color": mark.colour, "marker": mark.marker, "linestyle": mark.line, "markeredgecolor": "white"}
    axes.errorbar([x for x, *_ in known], [y for _, y, *_ in known], yerr=bars, label=name or None, capsize=3, **look)
