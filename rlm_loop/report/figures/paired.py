"""The same tasks under two arms: one line a task from the baseline to the arm."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures.cells import Arm, Measure, cells, measure_of
from rlm_loop.report.figures.style import (
    GREY,
    PAGE,
    SMALL,
    TITLE,
    caption,
    finish,
    lettered,
    marks,
    round_ticks,
    sheet,
    style,
)
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_SAME = "#8c8c8c"
_ACROSS = 3
#: From the left end of a panel to that of the next, where a panel is 1 wide.
_STEP = 1.35
#: Letters below a panel that do not meet.
_LETTERS = 18


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


def paired_slopes(
    results: Results | pd.DataFrame,
    *,
    measure: str = "input_tokens",
    baseline: str | None = None,
    arms: Iterable[str] | None = None,
) -> Figure:
    """One panel an arm: every task is a line from its figure with the baseline to that with the arm, on a log scale.

    Solid lines fall, dashed ones rise; the thick one joins the geometric means.  `results` are a study's, or its
    `frame()`; `measure` is `input_tokens`, `total_tokens`, `steps`, `seconds`, `cost` ...; `baseline` is the first arm
    by default.  Whether a task is resolved has no slope: see `paired_differences`.  Raises `StudyError` where there is
    nothing to draw, or matplotlib is missing.
    """
    found, asked = cells(results, arms), measure_of(measure)
    every = [pairs_of(arm, base, asked) for arm, base in found.against(baseline)]
    known = [p for p in every if p.values]
    if not known:
        raise StudyError(f"no task has {asked.name} above zero for two arms, so there is nothing to draw")
    across = min(_ACROSS, len(known))
    down = math.ceil(len(known) / across)
    colours = {arm: mark.colour for arm, mark in marks([a.label for a in found.arms]).items()}
    with style():
        made = sheet(PAGE if across > 2 else 1.0 + 2.6 * across, 0.6 + 2.7 * down)
        # One pair of axes a row, since axes cost more time than all that is drawn on them.
        rows: Any = made.subplots(down, 1, sharey=True, squeeze=False)
        for row, (axes,) in enumerate(rows):
            _row(axes, known[row * across : (row + 1) * across], across, row * across, colours)
            axes.set_ylabel(f"{asked.name} (log scale)")
        low, high = rows[0][0].get_ylim()
        round_ticks(rows[0][0].yaxis, low, high, asked.tick)
        unknown = sum(p.unknown for p in known)
        left = f" {unknown} pairs have no ratio (not known, or zero)." if unknown else ""
        caption(made, f"{found.note()}. One line a task; solid: less than {known[0].baseline.name}, dashed: more; "
                f"thick: geometric means, whose ratio is written below.{left}")  # fmt: skip
    made.set_label(f"Paired slopes of {asked.name}, each task from the baseline to the arm. {_told(known)}")
    return made


def _row(axes: Any, pairs: Sequence[ArmPairs], across: int, first: int, colours: Mapping[str, str]) -> None:
    """The panels of a row in the arms' colours, each from `_STEP * k` to `_STEP * k + 1` on the axis."""
    from matplotlib.patheffects import withStroke

    ends, names, below = [], [], []
    for k, one in enumerate(pairs):
        left = _STEP * k
        thin = max(0.25, min(0.8, 25 / len(one.values)))
        # one line a kind, with a gap (a point that is not drawn) after each task: many lines take long
        own = colours[one.arm.label]
        for sign, colour, line in ((0, _SAME, ":"), (-1, own, "-"), (1, own, (0, (4, 2)))):
            mine = [(there, here, math.nan) for there, here in one.values if _sign(here, there) == sign]
            look: Any = {"color": colour, "linestyle": line, "linewidth": 0.9, "alpha": thin, "zorder": 2}
            axes.plot([left, left + 1, math.nan] * len(mine), [value for task in mine for value in task], **look)
        halo = [withStroke(linewidth=4.6, foreground="white")]
        mean: Any = {"color": "black", "linewidth": 2.4, "markersize": 5, "zorder": 4, "path_effects": halo}
        axes.plot([left, left + 1], one.means, "o-", **mean)
        ends += [left, left + 1]
        names += _names(one)
        below.append(f"x {one.ratio:.2f}\n{one.less} less, {one.more} more")
        title = lettered(first + k, one.arm.label, (PAGE - 0.9) / _ACROSS)
        place = {"transform": axes.get_xaxis_transform(), "fontsize": TITLE, "fontweight": "bold"}
        axes.text(left - 0.12, 1.02, title, va="bottom", **place)
    axes.set_yscale("log")
    axes.set_xlim(-0.12, _STEP * (across - 1) + 1.12)
    finish(axes)
    axes.set_xticks(ends, names, color="black")
    for tick, side in zip(axes.get_xticklabels(), ("left", "right") * len(pairs)):
        tick.set_horizontalalignment(side)
    middles = [_STEP * k + 0.5 for k in range(len(pairs))]
    axes.set_xticks(middles, below, minor=True, fontsize=SMALL, color=GREY)
    axes.tick_params(axis="x", which="minor", length=0, pad=18)


def _sign(here: float, there: float) -> int:
    return (here > there) - (here < there)


def _names(pairs: ArmPairs) -> list[str]:
    names = [pairs.baseline.name, pairs.arm.name]
    # where there is no room the title has the arm, and the caption the baseline
    return names if sum(map(len, names)) <= _LETTERS else ["baseline", "arm"]


def _told(known: Sequence[ArmPairs]) -> str:
    return " ".join(
        f"{p.arm.label} against {p.baseline.name}: {p.less} of {len(p.values)} tasks take less, {p.more} more; "
        f"the geometric mean is {p.ratio:.2f} times that of {p.baseline.name}."
        for p in known
    )
