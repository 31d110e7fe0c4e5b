"""The figure of a study: what the arms resolve for their tokens, and how the prompt grows turn by turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures.doses import dose_response
from rlm_loop.report.figures.growth import Curve, prompt_curves
from rlm_loop.report.figures.labels import Tag, write
from rlm_loop.report.figures.overhead import overhead_by_turn
from rlm_loop.report.figures.saving import save as save_as
from rlm_loop.report.figures.style import Mark, caption, finish, marks, percent_axis, sheet, style
from rlm_loop.study import ArmSummary, Results, StudyError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def figure(results: Results, *, model: str | None = None) -> Figure:
    """Two panels for one model (the first by default): resolve rate against tokens, and cumulative prompt tokens.

    Raises `StudyError` where there is no task that every arm was tried on, or matplotlib is missing.
    """
    chosen = model or (results.models[0] if results.models else "")
    found = [s for s in results.summary() if s.model == chosen and s.n]
    if not found:
        raise StudyError("there is no task that every arm was tried on, so there is nothing to draw yet")
    curves = prompt_curves([r for r in results.compared if r["model"] == chosen], [s.arm for s in found])
    styles = marks([s.arm for s in found])
    with style():
        made = sheet(9.0, 3.9)
        left, right = made.subplots(1, 2, gridspec_kw={"wspace": 0.06})
        named = [(left, _rates(left, found, styles)), (right, _growth(right, curves, styles))]
        caption(made, _caption(results, found[0].n))
        made.draw_without_rendering()  # settles the layout
        made.set_layout_engine("none")
        for axes, tags in named:
            write(made, axes, tags)
    made.set_label(_told(results, found, curves))
    return made


def save_figure(results: Results, folder: str | Path, name: str = "figure", *, model: str | None = None) -> list[Path]:
    """Save the figure as PNG and SVG; the same results give the same files.  Returns their paths."""
    return save(figure(results, model=model), folder, name)


def save(made: Figure, folder: str | Path, name: str) -> list[Path]:
    """Save a figure as PNG and SVG, the same figure as the same bytes.  Returns their paths.

    Its alternative text is kept in both files (`rlm_loop.report.figures.save`).
    """
    return [*save_as(made, Path(folder) / f"{name}.png"), *save_as(made, Path(folder) / f"{name}.svg")]


def save_dose_figure(results: Results | pd.DataFrame, folder: str | Path, name: str = "doses") -> list[Path]:
    """Save `dose_response` as PNG and SVG; the same results give the same files.  Returns their paths."""
    return save(dose_response(results), folder, name)


def save_overhead_figure(
    frame: pd.DataFrame, folder: str | Path, name: str = "overhead", *, arms: Iterable[str] | None = None
) -> list[Path]:
    """Save `overhead_by_turn` as PNG and SVG; the same frame gives the same files.  Returns their paths."""
    return save(overhead_by_turn(frame, arms=arms), folder, name)


def _rates(axes: Any, found: Sequence[ArmSummary], styles: Mapping[str, Mark]) -> list[Tag]:
    known = [s for s in found if s.total_tokens and s.rate is not None]
    tags: list[Tag] = []
    for s in known:
        mark = styles[s.arm]
        x, y, low, high = s.total_tokens or 1.0, (s.rate or 0.0) * 100, s.low * 100, s.high * 100
        axes.errorbar(
            x,
            y,
            yerr=[[y - low], [high - y]],
            fmt=mark.marker,
            color=mark.colour,
            markersize=7,
            capsize=3,
            linewidth=1.1,
            markeredgecolor="white",
            zorder=3,
            clip_on=False,
        )
        tags.append(Tag(f"{s.arm}  {s.resolved}/{s.judged}", mark.colour, x, y, low, high, ((x, low), (x, high))))
    tokens = [t.x for t in tags] or [1.0]
    low, high = min(tokens) / 1.6, max(tokens) * 2.4  # room for the names beside the points
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_xticks([t for t in _ROUND if low <= t <= high], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_ylim(0, 100)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    percent_axis(axes.yaxis)
    finish(axes, "a   Tasks resolved, and their price", "mean tokens a task, in + out (log scale)")
    return tags


def _growth(axes: Any, curves: Sequence[Curve], styles: Mapping[str, Mark]) -> list[Tag]:
    tags: list[Tag] = []
    for curve in curves:
        if not curve.tokens:
            continue
        mark = styles[curve.arm]
        path = tuple((float(turn), tokens) for turn, tokens in enumerate(curve.tokens, 1))
        axes.plot(
            *zip(*path, strict=True),
            marker=mark.marker,
            color=mark.colour,
            linestyle=mark.line,
            markersize=5,
            linewidth=1.6,
            markeredgecolor="white",
            markeredgewidth=0.5,
            zorder=3,
        )
        x, y = path[-1]
        tags.append(Tag(curve.arm, mark.colour, x, y, y, y, path))
    longest = max((t.x for t in tags), default=1.0)
    axes.set_xlim(0.8, longest + max(0.8, longest * 0.25))
    axes.set_ylim(0, 1.1 * max((t.y for t in tags), default=1.0))
    axes.set_xticks(range(1, int(longest) + 1))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    finish(axes, "b   Prompt tokens sent so far, by turn", "turn")
    return tags


_ROUND = [step * 10**power for power in range(8) for step in (1, 2, 5)]


def _caption(results: Results, n: int) -> str:
    kind = "recorded run; " if results.recorded else ""
    source = results.provenance
    date = f", {source['date']}" if source["date"] else ""
    return (
        f"{kind}{source['model']}, {n} tasks an arm{date}. a: bars are 95 % Wilson intervals. "
        "b: mean over the tasks still running at a turn; a line ends where fewer than a third of the arm's tasks "
        "still run. Prompt tokens include those re-sent or cached."
    )


def _told(results: Results, found: Sequence[ArmSummary], curves: Sequence[Curve]) -> str:
    grown = {c.arm: f", {c.tokens[-1]:,.0f} prompt tokens sent by turn {len(c.tokens)}" for c in curves if c.tokens}
    lines = [
        f"{s.arm}: {s.resolved} of {s.judged} resolved ({s.low:.0%} to {s.high:.0%}), "
        f"{'unknown' if s.total_tokens is None else f'{s.total_tokens:,.0f}'} tokens a task{grown.get(s.arm, '')}"
        for s in found
    ]
    return f"Tasks resolved and their price, and prompt tokens by turn, in {results.name}. {'; '.join(lines)}."
