"""How arms differ from the baseline on the same tasks: estimates with intervals, and every pair behind them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from rlm_loop.report.figures.cells import Arm, Measure, cells, measure_of, rows_of
from rlm_loop.report.figures.effects import DrawnEffect, effects_of, given, scale, thin_ticks
from rlm_loop.report.figures.style import PAGE, SMALL, ArmStyle, caption, finish, marks, settle, sheet, style
from rlm_loop.study.compare.contrast import percent
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.analysis import read
from rlm_loop.study.results import Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class ArmPairs:
    """The figures of one arm and its baseline on the same units, both known and above zero."""

    arm: Arm
    baseline: Arm
    values: Sequence[tuple[float, float]]
    unknown: int

    @property
    def ratio(self) -> float:
        """The geometric mean of arm / baseline."""
        return math.exp(sum(math.log(here / there) for there, here in self.values) / len(self.values))

    @property
    def means(self) -> tuple[float, float]:
        """The geometric means of baseline and arm."""
        logs = [sum(math.log(pair[side]) for pair in self.values) / len(self.values) for side in (0, 1)]
        return math.exp(logs[0]), math.exp(logs[1])

    @property
    def less(self) -> int:
        return sum(here < there for there, here in self.values)

    @property
    def more(self) -> int:
        return sum(here > there for there, here in self.values)


def pairs_of(arm: Arm, baseline: Arm, measure: Measure) -> ArmPairs:
    """A pair with a figure that is not known or zero has no ratio, and is counted in `unknown`."""
    here, there = measure.values(arm), measure.values(baseline)
    both = [(there[u], here[u]) for u in arm.rows if here.get(u, 0.0) > 0 and there.get(u, 0.0) > 0]
    return ArmPairs(arm, baseline, both, len(arm.rows) - len(both))


def paired_differences(
    results: Results | pd.DataFrame,
    *,
    baseline: str | None = None,
    arms: Iterable[str] | None = None,
    measures: Sequence[str] = ("resolved", "input_tokens"),
    margin: float | None = None,
    intervals: pd.DataFrame | None = None,
) -> Figure:
    """One panel a measure: how each arm differs from the baseline on the same tasks, with intervals.

    `results` are a study's, or its `frame()`: then every task is a faint dot behind the estimate.  The intervals are
    those of `rlm_loop.study.compare`; its `frame()` can be handed in as `intervals` (say, with another
    policy for missing pairs), or in place of the results, then without dots.  Resolved tasks differ in points, all
    other measures as ratios.  `margin` shades where the arm resolves fewer by more than so much (a share; by
    default the margin that the study declared, and no shade where it declared none).  Raises `StudyError` where there
    is nothing to draw, or something to draw it with is missing.
    """
    wanted = None if arms is None else list(arms)
    rows: Results | None = None
    if not isinstance(results, Results) and given(results):
        intervals = results
    else:
        rows = results if isinstance(results, Results) else Results([dict(r) for r in rows_of(results)])
        cells(rows)  # says what is wrong with a frame before any statistics are done
        intervals = _compared(rows, baseline) if intervals is None else intervals
        plan = read(rows.lock)
        margin = plan.margin if margin is None and plan is not None else margin
    found = cast("list[dict[str, Any]]", intervals.to_dict("records"))
    effects = effects_of(found, measures, wanted)
    if not effects:
        there = ", ".join(dict.fromkeys(str(r["measure"]) for r in found))
        raise StudyError(
            f"there is no interval of {', '.join(measures)} for these arms; compared are {there or 'none'}"
        )
    names = list(dict.fromkeys(e.label for e in effects))
    panels = [m for m in measures if any(e.measure == m for e in effects)]
    # the mark that an arm has in the other figures of the study
    drawn = marks(list(dict.fromkeys([*(rows.arms if rows is not None else [effects[0].baseline]), *names])))
    with style():
        made = sheet(PAGE, 1.35 + 0.42 * len(names))
        row: Any = made.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for number, (axes, measure) in enumerate(zip(row, panels, strict=True)):
            mine = [e for e in effects if e.measure == measure]
            if rows is not None and not mine[0].share:
                for effect in mine:
                    _dots(axes, names.index(effect.label), _ratios(rows, effect))
            for effect in mine:
                _interval(axes, names.index(effect.label), effect, drawn[effect.label])
            scale(axes, mine, margin)
            name = "Resolved, points" if mine[0].share else f"{measure_of(measure).title}, ratio"
            finish(axes, f"{chr(97 + number)}   {name}", f"against {effects[0].baseline}", grid="x")
            axes.tick_params(axis="y", length=0, labelcolor="black")
        row[0].set_yticks(range(len(names)), names)
        row[0].set_ylim(len(names) - 0.4, -0.6)
        used = [r for r in found if r["measure"] in panels]
        caption(made, _caption(used, rows is not None, margin if "resolved" in panels else None))
        settle(made)
        for axes in row:
            if axes.get_xscale() == "log":
                thin_ticks(made, axes)
    made.set_label(_told(effects, used))
    return made


def _compared(results: Results, baseline: str | None) -> pd.DataFrame:
    from rlm_loop.study.compare.comparison import (
        compare,  # takes scipy, which a figure of given intervals does not need
    )

    return compare(results, baseline).frame()


def _ratios(results: Results, effect: DrawnEffect) -> list[float]:
    """What one pair of arms has on the tasks that both finished; the intervals say what became of the others."""
    if not {effect.arm, effect.baseline} <= set(results.arms):
        return []
    both = cells(results, (effect.baseline, effect.arm)).against(effect.baseline)
    chosen = [pair for pair in both if effect.model in ("", pair[0].model)]
    return sorted(
        here / there for arm, base in chosen for there, here in pairs_of(arm, base, measure_of(effect.measure)).values
    )


def _dots(axes: Any, place: int, ratios: Sequence[float]) -> None:
    """Every pair as a faint dot, moved up or down by a fixed rule so that they do not lie on each other."""
    places = [place + 0.6 * ((0.618034 * k) % 1 - 0.5) for k in range(len(ratios))]
    axes.plot(ratios, places, "o", color="#8c8c8c", markersize=2.6, alpha=0.5, markeredgewidth=0, zorder=1)


def _interval(axes: Any, place: int, effect: DrawnEffect, mark: ArmStyle) -> None:
    middle = effect.estimate
    bars = [[max(0.0, middle - effect.low)], [max(0.0, effect.high - middle)]]
    look = {"fmt": mark.marker, "color": mark.colour, "markersize": 6.5, "markeredgecolor": "white"}
    axes.errorbar(middle, place, xerr=bars, capsize=3.5, linewidth=1.6, zorder=4, **look)
    beside = (1.02, place)
    axes.annotate(effect.text, beside, xycoords=("axes fraction", "data"), fontsize=SMALL, va="center")


def _caption(found: Sequence[Mapping[str, Any]], dots: bool, margin: float | None) -> str:
    models = list(dict.fromkeys(str(r["model"]) for r in found if r.get("model")))
    sizes = sorted({int(r["pairs"]) for r in found if r.get("pairs")})
    many = " to ".join(str(n) for n in dict.fromkeys((*sizes[:1], *sizes[-1:])))
    parts = [", ".join([*models, *([f"{many} pairs (task x seed) an arm"] if many else [])])]
    parts.append(f"bars: {_levels(found)}" + (", dots: single tasks" if dots else ""))
    missing = [(str(r["policy"]), int(r.get("missing") or 0)) for r in found if r.get("policy")]
    for policy in dict.fromkeys(p for p, _ in missing):
        most = max(n for p, n in missing if p == policy)
        parts.append(f"missing pairs: {f'up to {most} an arm, policy {policy}' if most else 'none'}")
    if margin:
        parts.append(f"shaded: fewer by more than {100 * margin:g} points")
    return "; ".join(p for p in parts if p) + "."


def _levels(found: Sequence[Mapping[str, Any]]) -> str:
    """The level of the intervals; those of claims that were judged at a stricter one are named."""
    levels = {(str(r["arm"]), str(r["measure"])): float(r.get("confidence", 0.95)) for r in found}
    least = min(levels.values(), default=0.95)
    wider: dict[float, list[str]] = {}
    for (arm, measure), level in levels.items():
        if level > least:
            wider.setdefault(level, []).append(f"{arm} in {measure.replace('_', ' ')}")
    named = "; ".join(f"{percent(level)}: {', '.join(of)}" for level, of in sorted(wider.items()))
    return f"{percent(least)} intervals" + (f" ({named})" if named else "")


def _told(effects: Sequence[DrawnEffect], found: Sequence[Mapping[str, Any]]) -> str:
    lines = [f"{e.label}, {e.measure.replace('_', ' ')}: {e.text}{' points' if e.share else ''}" for e in effects]
    return (
        f"Paired differences from {effects[0].baseline}, with {_levels(found)}. {'; '.join(lines)}. "
        f"{_caption(found, False, None)}"
    )
