"""The overview of a study: what the arms resolve for their tokens, and how their prompts grow turn by turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures import pareto
from rlm_loop.report.figures.cells import cells, measure_of
from rlm_loop.report.figures.labels import Tag, write
from rlm_loop.report.figures.style import ArmStyle, caption, finish, marks, settle, sheet, style
from rlm_loop.study import Results
from rlm_loop.study.store.rows import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Curve:
    """`tokens[k]` is the mean of the prompt tokens sent up to turn k + 1; `running[k]` over how many tasks."""

    arm: str
    tokens: tuple[float, ...]
    running: tuple[int, ...]


def prompt_curves(rows: Sequence[Row], arms: Sequence[str], share: float = 1 / 3) -> list[Curve]:
    """The curve of each arm, over the tasks that reach a turn, as long as at least `share` of the arm's tasks do.

    Survivors rather than carrying a finished task's last figure forward: the slope then is what a turn really
    costs, while a carried figure flattens the line where tasks end, so that an arm which gives up early would look
    cheap per turn.  The price of a task as a whole is in the tables.
    """
    return [_curve(arm, [r["cumulative_prompt_tokens"] for r in rows if r["arm"] == arm], share) for arm in arms]


def figure(results: Results, *, model: str | None = None) -> Figure:
    """Two panels for one model (the first by default): resolve rate against tokens, and cumulative prompt tokens.

    The first panel is that of `resolve_against_tokens`.  Raises `StudyError` where there is no task that every arm was
    tried on, or matplotlib is missing.
    """
    chosen = model or (results.models[0] if results.models else "")
    mine = replace(results, rows=[r for r in results.rows if r["model"] == chosen])
    found, asked = cells(mine), measure_of("total_tokens")
    points = pareto.points_of(found.arms, asked.column)
    curves = prompt_curves(mine.complete_pairs, [a.label for a in found.arms])
    drawn = marks([a.label for a in found.arms])
    with style():
        made = sheet(9.0, 3.9)
        left, right = made.subplots(1, 2, gridspec_kw={"wspace": 0.06})
        named = [(left, pareto.panel(left, points, drawn, asked)), (right, _growth(right, curves, drawn))]
        finish(left, "a   Tasks resolved, and their tokens", f"{asked.name} a task, mean")
        caption(made, _caption(results, found.note()))
        settle(made)
        for axes, tags in named:
            write(made, axes, tags, leaders=True)
    grown = [f"{c.arm}: {c.tokens[-1]:,.0f} by turn {len(c.tokens)}" for c in curves if c.tokens]
    made.set_label(
        f"Tasks resolved and their tokens, and prompt tokens by turn, in {results.name}. "
        f"{pareto.text(points, asked)} Prompt tokens sent: {'; '.join(grown)}."
    )
    return made


def _growth(axes: Any, curves: Sequence[Curve], styles: Mapping[str, ArmStyle]) -> list[Tag]:
    tags: list[Tag] = []
    for curve in curves:
        if not curve.tokens:
            continue
        mark = styles[curve.arm]
        path = tuple((float(turn), tokens) for turn, tokens in enumerate(curve.tokens, 1))
        look = {"markersize": 5, "linewidth": 1.6, "markeredgecolor": "white", "markeredgewidth": 0.5, **mark.look}
        axes.plot(*zip(*path, strict=True), zorder=3, **look)
        x, y = path[-1]
        tags.append(Tag(curve.arm, mark.colour, x, y, y, y, path))
    longest = max((t.x for t in tags), default=1.0)
    axes.set_xlim(0.8, longest + max(0.8, longest * 0.25))
    axes.set_ylim(0, 1.1 * max((t.y for t in tags), default=1.0))
    axes.set_xticks(range(1, int(longest) + 1))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    finish(axes, "b   Prompt tokens sent so far, by turn", "turn")
    return tags


def _caption(results: Results, note: str) -> str:
    kind = "Recorded run; " if results.recorded else ""
    date = f", {results.provenance['date']}" if results.provenance["date"] else ""
    return (
        f"{kind}{note}{date}. a: {pareto.LEGEND} b: mean over the tasks still running at a turn; a line ends where "
        "fewer than a third of the arm's tasks still run. Prompt tokens include those re-sent or cached."
    )


def _curve(arm: str, growths: Sequence[Sequence[int]], share: float) -> Curve:
    tokens: list[float] = []
    running: list[int] = []
    for turn in range(max((len(g) for g in growths), default=0)):
        here = [g[turn] for g in growths if len(g) > turn]
        if len(here) < share * len(growths):
            break
        tokens.append(sum(here) / len(here))
        running.append(len(here))
    return Curve(arm, tuple(tokens), tuple(running))
