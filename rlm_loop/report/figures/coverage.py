"""The figure of a run's coverage: for each depth, which part of the context was seen, and where the needles are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures.style import COLOURS, finish, matplotlib_or_say, sheet, style
from rlm_loop.study.coverage import Coverage

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Cells of a strip.
_CELLS = 600
_UNSEEN = "#ececec"
_NEEDLE = COLOURS[1]


def coverage_figure(
    coverage: Coverage, *, needles: Sequence[tuple[int, int]] = (), title: str = "What was seen of the context"
) -> Figure:
    """One strip for each depth, the context from left to right: the darker, the larger the share of a cell seen.

    `needles` are ranges that are marked above the strips.  Raises `StudyError` where matplotlib is missing.
    """
    matplotlib_or_say()
    from matplotlib.colors import LinearSegmentedColormap

    depths = coverage.depths or [0]
    shades = LinearSegmentedColormap.from_list("seen", [_UNSEEN, COLOURS[0]])
    with style():
        made = sheet(9.0, 0.9 + 0.5 * len(depths))
        axes: Any = made.subplots()
        for row, depth in enumerate(depths):
            shares = coverage.shares(_CELLS, depth=depth)
            # a cell of which a little was seen is not to look like one of which nothing was
            visible = [0.25 + 0.75 * s if s else 0.0 for s in shares]
            extent = (0, max(1, coverage.size), row + 0.4, row - 0.4)
            axes.imshow([visible], aspect="auto", extent=extent, cmap=shades, vmin=0, vmax=1, interpolation="nearest")
        for start, end in needles:
            axes.plot([(start + end) / 2], [-0.62], marker="v", color=_NEEDLE, markersize=5, clip_on=False)
        axes.set_xlim(0, max(1, coverage.size))
        axes.set_ylim(len(depths) - 0.5, -0.8 if needles else -0.5)
        axes.set_yticks(range(len(depths)), [_named(coverage, depth) for depth in depths])
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        below = "character of the context" + (" (triangles: what the answer depends on)" if needles else "")
        finish(axes, f"{title}: {coverage.share:.1%}", below, grid="")
    named = ", ".join(_named(coverage, depth) for depth in depths)
    made.set_label(f"{title}: {coverage.share:.1%} of {coverage.size:,} characters; by depth: {named}.")
    return made


def _named(coverage: Coverage, depth: int) -> str:
    seen = sum(end - start for start, end in coverage.ranges(depth=depth))
    return f"depth {depth}  {seen / (coverage.size or 1):.1%}"
