"""The figure of paired differences: how arms differ from the baseline on the same tasks, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from rlm_loop.report.figures.rows import results_of
from rlm_loop.report.figures.style import GREY, SMALL, ArmStyle, finish, marks, panels, style, whiskers
from rlm_loop.report.tables.comparison import levels, measure_name
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.analysis import read
from rlm_loop.study.results import Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


_MEASURES = ("resolved", "input_tokens")


@dataclass(frozen=True)
class _Effect:
    """An estimate with its interval: a difference in points of 100 where `share`, else a ratio."""

    label: str
    measure: str
    share: bool
    estimate: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """The numbers; a ratio as percent more or less."""
        numbers = self.estimate, self.low, self.high
        said = [f"{v:+.1f}" if self.share else f"{100 * (v - 1):+.0f}" for v in numbers]
        return f"{said[0]}{'' if self.share else ' %'} ({said[1]} to {said[2]})".replace("-", "−")


def paired_differences(
    results: Results | pd.DataFrame,
    axes: Any = None,
    *,
    baseline: str | None = None,
    margin: float | None = None,
    intervals: pd.DataFrame | None = None,
) -> Figure:
    """Draw a panel for each measure: how each arm differs from the baseline on the same tasks, with intervals.

    `results` are a study's, or its `frame()`; `axes` are as in `resolve_rates`, one or two.  The intervals are those of
    `rlm_loop.study.compare`; its `frame()` can be handed in as `intervals` (say, with another policy for missing
    pairs).  Resolved tasks differ in points, prompt tokens as ratios.  `margin` shades where the arm resolves fewer by
    more than so much (a share; by default the margin that the study declared, and no shade where it declared none).
    Raises `StudyError` where there is nothing to draw, or something to draw it with is missing.
    """
    rows = results_of(results)
    if intervals is None:
        from rlm_loop.study.compare.comparison import compare  # takes scipy, which given intervals do not need

        intervals = compare(rows, baseline).frame()
    plan = read(rows.lock)
    margin = plan.margin if margin is None and plan is not None else margin
    found = cast("list[dict[str, Any]]", intervals.to_dict("records"))
    effects = _effects_of(found)
    if not effects:
        raise StudyError("there is no interval of resolved tasks or prompt tokens for any arm, so nothing to draw")
    against = str(found[0]["baseline"])
    names = list(dict.fromkeys(e.label for e in effects))
    measures = [m for m in _MEASURES if any(e.measure == m for e in effects)]
    drawn = marks(list(dict.fromkeys([*rows.arms, *names])))  # those of the other figures of the study
    used = [r for r in found if r["measure"] in measures]
    with style():
        made = panels(axes, [list(range(len(measures)))], 1.35 + 0.42 * len(names), sharey=True)
        for number, (panel, measure) in enumerate(zip(made.axes, measures, strict=True)):
            mine = [e for e in effects if e.measure == measure]
            for effect in mine:
                _interval(panel, names.index(effect.label), effect, drawn[effect.label])
            _scale(panel, mine, margin)
            name = "Resolved, points" if mine[0].share else f"{measure_name(measure).capitalize()}, ratio"
            finish(panel, f"{chr(97 + number)}   {name}" if len(measures) > 1 else name, f"against {against}", grid="x")
            panel.tick_params(axis="y", length=0, labelcolor="black")
            panel.set_yticks(range(len(names)), names)
            panel.set_ylim(len(names) - 0.4, -0.6)
        lines = [f"{e.label}, {e.measure.replace('_', ' ')}: {e.text}{' points' if e.share else ''}" for e in effects]
        words = f"Paired differences from {against}. {'; '.join(lines)}. {_caption(used, None)}"
        return made.finished(words, _caption(used, margin if "resolved" in measures else None))


def _effects_of(rows: Sequence[Mapping[str, Any]]) -> list[_Effect]:
    """The rows of `Comparison.frame()` that are drawn: those that have a whole interval."""
    several = len({r["model"] for r in rows}) > 1
    found: list[_Effect] = []
    for row in rows:
        share, numbers = row["effect"] == "difference", [row[name] for name in ("estimate", "low", "high")]
        if row["measure"] in _MEASURES and not any(v is None or v != v for v in numbers):
            label = f"{row['arm']}, {row['model']}" if several else str(row["arm"])
            found.append(_Effect(label, row["measure"], share, *[(100.0 if share else 1.0) * v for v in numbers]))
    return found


def _interval(axes: Any, place: int, effect: _Effect, mark: ArmStyle) -> None:
    bars = whiskers([(effect.estimate, effect.low, effect.high)])
    look = {"fmt": mark.marker, "color": mark.colour, "markersize": 6.5, "markeredgecolor": "white"}
    axes.errorbar(effect.estimate, place, xerr=bars, capsize=3.5, linewidth=1.6, zorder=4, **look)
    axes.annotate(effect.text, (1.02, place), xycoords=("axes fraction", "data"), fontsize=SMALL, va="center")


def _signed(value: float, _: object = None) -> str:
    return f"{value:+.0f}".replace("-", "−") if value else "0"


def _scale(axes: Any, effects: Sequence[_Effect], margin: float | None) -> None:
    """The same room to both sides of no difference; a log axis for ratios."""
    share = effects[0].share
    axes.axvline(0.0 if share else 1.0, color="black", linewidth=0.9, zorder=2)
    if share:
        reach = max(10.0, *(max(abs(e.low), abs(e.high)) for e in effects)) * 1.08
        axes.set_xlim(-reach, reach)
        axes.xaxis.set_major_formatter(_signed)
        if margin:
            axes.axvspan(-reach, -100 * margin, color="#ececec", zorder=0, linewidth=0)
            axes.axvline(-100 * margin, color=GREY, linewidth=0.9, linestyle="--", zorder=2)
        return
    reach = min(1e6, max([2.0, *(max(e.high, 1 / max(e.low, 1e-9)) for e in effects)])) * 1.08
    axes.set_xscale("log")
    axes.set_xlim(1 / reach, reach)
    top = math.floor(math.log2(reach))
    powers = [p for p in range(-top, top + 1) if not p % max(1, math.ceil(top / 2))]
    names = ["same" if not p else f"x {2**p}" if p > 0 else f"1/{2**-p}" for p in powers]
    axes.set_xticks([2.0**p for p in powers], names, fontsize=SMALL)
    axes.set_xticks([], minor=True)


def _caption(found: Sequence[Mapping[str, Any]], margin: float | None) -> str:
    """Model, pairs, level of each interval, and what became of missing pairs."""
    models = list(dict.fromkeys(str(r["model"]) for r in found if r.get("model")))
    sizes = sorted({int(r["pairs"]) for r in found if r.get("pairs")})
    many = " to ".join(str(n) for n in dict.fromkeys((*sizes[:1], *sizes[-1:])))
    bars = levels((str(r["arm"]), str(r["measure"]), float(r.get("confidence", 0.95))) for r in found)
    missing = [(str(r["policy"]), int(r.get("missing") or 0)) for r in found if r.get("policy")]
    most, policy = max(((n, p) for p, n in missing), default=(0, ""))
    parts = [
        ", ".join([*models, *([f"{many} pairs (task x seed) an arm"] if many else [])]),
        f"bars: {bars}",
        f"missing pairs: {f'up to {most} an arm, policy {policy}' if most else 'none'}" if missing else "",
        f"shaded: fewer by more than {100 * margin:g} points" if margin else "",
    ]
    return "; ".join(p for p in parts if p) + "."
