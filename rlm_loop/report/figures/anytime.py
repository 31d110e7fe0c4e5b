"""The figure of what a smaller budget would have given: resolve rate against steps and against prompt tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.agents.attempts.anytime import Anytime, By
from rlm_loop.report.figures.plots import save
from rlm_loop.report.figures.style import Mark, caption, finish, marks, percent_axis, sheet, style
from rlm_loop.report.tables.table import Table
from rlm_loop.study import statistics
from rlm_loop.study.compare.anytime_curves import AnytimeCurve, curve
from rlm_loop.study.errors import StudyError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def anytime_figure(runs: Mapping[str, Sequence[Anytime]], *, note: str = "") -> Figure:
    """Two panels by arm: the share of runs that are right at the end of a budget, in steps and in prompt tokens.

    Thin dotted lines are the runs that were right at some time until then, where that differs.  `note` goes below.
    Raises `StudyError` where there is no run, or matplotlib is missing.
    """
    known = {arm: list(of) for arm, of in runs.items() if of}
    if not known:
        raise StudyError("there is no run to draw; score some with patching.anytime first")
    drawn = marks(list(known))
    with style():
        made = sheet(9.0, 3.6)
        left, right = made.subplots(1, 2, sharey=True)
        _panel(left, known, drawn, "step", "a   Resolved within so many steps", "steps")
        _panel(right, known, drawn, "prompt_tokens", "b   Resolved within so many prompt tokens", "prompt tokens a run")
        left.legend(frameon=False, fontsize=8, loc="upper left")
        words = "dotted: right at some time until then (some runs break what they mended)"
        caption(made, f"{note}; {words}" if note else words)
    made.set_label(f"Share of runs that are right at the end of a budget. {_told(known)}.")
    return made


def save_anytime_figure(
    runs: Mapping[str, Sequence[Anytime]], folder: str | Path, name: str = "anytime", *, note: str = ""
) -> list[Path]:
    """Save the figure as PNG and SVG; the same runs give the same files.  Returns their paths."""
    return save(anytime_figure(runs, note=note), folder, name)


def anytime_table(runs: Mapping[str, Sequence[Anytime]], steps: Sequence[int] = (5, 10, 15)) -> Table:
    """One row an arm: resolved at the end and within so many steps, when first, and how many broke it again."""
    columns = ["arm", "n", "resolved", "rate [95 % CI]", *(f"within {s}" for s in steps), "first at", "broken later"]
    rows: list[list[str]] = []
    for arm, of in runs.items():
        ends, first = sum(run.resolved for run in of), [run.resolved_at for run in of if run.resolved_at is not None]
        low, high = statistics.wilson_by_cluster([float(run.resolved) for run in of], [run.task for run in of])
        within = curve(of, "step", steps).resolved if of else [0] * len(steps)
        rows.append(
            [
                arm,
                str(len(of)),
                str(ends),
                f"{ends / len(of):.0%} [{low * 100:.0f}-{high * 100:.0f}]" if of else "-",
                *(str(count) for count in within),
                f"{sum(first) / len(first):.1f}" if first else "-",
                str(sum(run.broken_later for run in of)),
            ]
        )
    notes = [
        "within k: runs that are right after step k. first at: mean step of those that ever were. "
        "broken later: right once, wrong at the end."
    ]
    return Table("What a smaller budget would have given", columns, rows, notes, labels=1)


def _told(runs: Mapping[str, Sequence[Anytime]]) -> str:
    return "; ".join(
        f"{arm}: {sum(run.resolved for run in of)} of {len(of)} right at the end, "
        f"{sum(run.resolved_at is not None for run in of)} at some time"
        for arm, of in runs.items()
    )


def _panel(
    axes: Any, runs: Mapping[str, Sequence[Anytime]], drawn: Mapping[str, Mark], by: By, title: str, below: str
) -> None:
    longest = 0.0
    for arm, of in runs.items():
        found = curve(of, by)
        if not found.runs:
            continue
        mark = drawn[arm]
        longest = max(longest, *found.budgets)
        look = {"color": mark.colour, "marker": mark.marker, "markersize": 3.5, "markevery": (0.15, 0.3)}
        axes.step(found.budgets, _percent(found, found.resolved), where="post", linewidth=1.6, label=arm, **look)
        if found.ever != found.resolved:
            dotted = {"linestyle": ":", "linewidth": 1.0, "color": mark.colour}
            axes.step(found.budgets, _percent(found, found.ever), where="post", **dotted)
    axes.set_xlim(0, longest * 1.04 or 1.0)
    axes.set_ylim(0, 100)
    percent_axis(axes.yaxis)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    finish(axes, title, below)


def _percent(found: AnytimeCurve, counts: Sequence[int]) -> list[float]:
    return [100 * count / found.runs for count in counts]
