"""The figure of where the prompt tokens of each arm go: a bar an arm, stacked by cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures.colours import cause_colour, cause_place
from rlm_loop.report.figures.rows import Arm, arms_of
from rlm_loop.report.figures.style import HATCHES, PAGE, SMALL, caption, finish, sheet, style
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def stacked_causes(
    results: Results | pd.DataFrame, *, arms: Iterable[str] | None = None, share: bool = False
) -> Figure:
    """Mean prompt tokens a task of each arm, stacked by cause; with `share` every bar is 100 % long.

    `results` are a study's, or its `frame()`; the column `by_cause` is used.  Re-sent and cached tokens count each time
    they were sent; sub-calls are included.  Neighbours in a bar differ in hatch as well as in colour.  Raises
    `StudyError` where there is nothing to draw, or matplotlib is missing.
    """
    found = arms_of(results, arms, ["by_cause"])
    means = {arm.label: _means(arm) for arm in found.arms}
    order = sorted({c for of in means.values() for c in of}, key=cause_place)
    if not order:
        raise StudyError("no task of this study says where its tokens went, so there is nothing to draw")
    with style():
        made = sheet(PAGE, 1.5 + 0.42 * len(means))
        axes: Any = made.subplots()
        sums = {arm: sum(of.values()) for arm, of in means.items()}
        ends = dict.fromkeys(means, 0.0)
        for number, cause in enumerate(order):
            widths = {a: of.get(cause, 0.0) * (100 / (sums[a] or 1) if share else 1) for a, of in means.items()}
            look = {"color": cause_colour(cause), "edgecolor": "white", "hatch": HATCHES[number % len(HATCHES)]}
            starts, label = list(ends.values()), _named(cause)
            axes.barh(list(means), list(widths.values()), left=starts, height=0.72, label=label, linewidth=0.6, **look)
            ends = {arm: start + widths[arm] for arm, start in ends.items()}
        longest = max(ends.values())
        for place, arm in enumerate(means):
            axes.text(ends[arm] + 0.008 * longest, place, f"{sums[arm]:,.0f}", va="center", fontsize=SMALL)
        axes.invert_yaxis()
        axes.set_xlim(0, longest * 1.1)
        axes.xaxis.set_major_formatter("{x:.0f} %" if share else "{x:,.0f}")
        axes.tick_params(axis="y", length=0)
        below = "share of the prompt tokens (figure: tokens a task)" if share else "prompt tokens a task, mean"
        finish(axes, "Where the prompt tokens go", below, grid="x")
        made.legend(loc="outside right upper", frameon=False, fontsize=SMALL)
        caption(made, f"{found.note()}. Tokens that are re-sent or cached count each time; sub-calls are included.")
    made.set_label(_in_words(means, order))
    return made


def _means(arm: Arm) -> dict[str, float]:
    known: list[Mapping[str, int]] = [
        r["by_cause"] for r in arm.rows.values() if isinstance(r.get("by_cause"), Mapping)
    ]
    sums: Counter[str] = Counter()
    for row in known:
        sums.update(row)
    return {cause: total / len(known) for cause, total in sums.items() if total}


def _named(cause: str) -> str:
    return cause.replace("scaffold:", "added: ").replace("_", " ")


def _in_words(means: Mapping[str, Mapping[str, float]], order: Sequence[str]) -> str:
    lines: list[str] = []
    for arm, of in means.items():
        whole = sum(of.values())
        parts = sorted((c for c in order if of.get(c)), key=lambda c: -of[c])
        lines.append(f"{arm}: {whole:,.0f} (" + ", ".join(f"{_named(c)} {of[c] / whole:.0%}" for c in parts) + ")")
    return "Stacked bars of the mean prompt tokens a task, by cause. " + "; ".join(lines) + "."
