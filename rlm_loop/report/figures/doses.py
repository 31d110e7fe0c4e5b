"""The figure of a dose-response study: what is resolved, and what is spent, by the dose of each injector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures.dose_arms import Dose, by_dose
from rlm_loop.report.figures.factor import factor_response, has_factors
from rlm_loop.report.figures.style import COLOURS, caption, finish, percent_axis, sheet, style
from rlm_loop.study import Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_LINE = COLOURS[0]
_SPENT = (("injected", COLOURS[1], "///"), ("rest of the prompts", "#d0d0d0", ""), ("output", COLOURS[5], ".."))


def dose_response(results: Results | pd.DataFrame, *, factor: str | None = None) -> Figure:
    """What is resolved and what is spent, by dose: above the rate of resolved tasks, below the tokens a task.

    `results` are a study's, or its `frame()`.  Without `factor` its arms are doses of injectors, named as
    `dose_arms.py` says, and each injector is a column.  With it, the x axis has the values of that ablation
    factor (`temperature`, `max_depth` ...), and every base arm is a line.  A study with exactly one factor needs no
    name.  Raises `StudyError` where there are no doses, or matplotlib is missing.
    """
    if factor is not None or has_factors(results):
        return factor_response(results, factor)
    found = by_dose(results)
    injectors = list(dict.fromkeys(d.injector for d in found))
    groups = [[d for d in found if d.injector == injector] for injector in injectors]
    with style():
        made = sheet(1.2 + 3.9 * len(groups), 5.2)
        axes: Any = made.subplots(2, len(groups), sharey="row", squeeze=False)
        for column, group in enumerate(groups):
            _rates(axes[0][column], group)
            _spending(axes[1][column], group)
            for row in (0, 1):
                letter = chr(97 + row * len(groups) + column)
                title = f"{letter}   {group[0].injector}: " + ("resolved", "tokens a task")[row]
                _finish(axes[row][column], group, title)
        axes[1][0].legend(frameon=False, fontsize=8, loc="upper left", reverse=True)
        caption(made, _caption(found))
    made.set_label(_told(groups))
    return made


def _rates(axes: Any, group: Sequence[Dose]) -> None:
    rates = [100 * (d.arm.rate or 0.0) for d in group]
    bars = [[r - 100 * d.arm.low for r, d in zip(rates, group, strict=True)]]
    bars.append([100 * d.arm.high - r for r, d in zip(rates, group, strict=True)])
    axes.errorbar(range(len(group)), rates, yerr=bars, fmt="o-", color=_LINE, capsize=3, linewidth=1.2, markersize=6)
    for at, dose in enumerate(group):
        paired = f"\n+{dose.gained} −{dose.lost}" if dose.strength else ""
        text = f"{dose.arm.resolved}/{dose.arm.judged}{paired}"
        above = (at, 100 * dose.arm.high)
        axes.annotate(text, above, (0, 3), textcoords="offset points", fontsize=8, ha="center", va="bottom")
    axes.set_ylim(0, 125)  # room for the words above a bar that ends at 100
    axes.set_yticks(range(0, 101, 25))
    percent_axis(axes.yaxis)


def _spending(axes: Any, group: Sequence[Dose]) -> None:
    parts = [_parts(d) for d in group]
    bottom = [0.0] * len(group)
    for (name, colour, hatch), heights in zip(_SPENT, zip(*parts, strict=True), strict=True):
        look = {"color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.6}
        axes.bar(range(len(group)), heights, 0.6, bottom=bottom, label=name, zorder=2, **look)
        bottom = [b + h for b, h in zip(bottom, heights, strict=True)]
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylim(0, max(1.5 * max(bottom), axes.get_ylim()[1]))  # room for the legend


def _parts(dose: Dose) -> tuple[float, float, float]:
    """Injected text (the loop's own system text included), the rest of the prompts, and output; unknown is no bar."""
    arm = dose.arm
    injected, entered = arm.scaffold_tokens or 0.0, arm.input_tokens or 0.0
    return injected, max(0.0, entered - injected), arm.output_tokens or 0.0


def _finish(axes: Any, group: Sequence[Dose], title: str) -> None:
    axes.set_xticks(range(len(group)), [d.label for d in group])
    axes.set_xlim(-0.5, len(group) - 0.5)
    below = "how often it is said" if any("turn" in d.label for d in group) else "its characters, each time"
    finish(axes, title, below)


def _caption(found: Sequence[Dose]) -> str:
    return (
        f"{found[0].arm.model}, {found[0].arm.n} tasks an arm, every arm on the same. Bars: 95 % Wilson intervals. "
        "+a −b: tasks that only this dose, and only none, resolved. "
        "Injected: the loop's own system text and the injector's, each time it was sent."
    )


def _told(groups: Sequence[Sequence[Dose]]) -> str:
    lines = [
        f"{group[0].injector}: "
        + "; ".join(
            f"{d.label}: {d.arm.resolved} of {d.arm.judged} resolved, {d.arm.total_tokens or 0:,.0f} tokens a task"
            for d in group
        )
        for group in groups
    ]
    return "Resolve rate and tokens a task by the dose of an injector. " + ". ".join(lines) + "."
