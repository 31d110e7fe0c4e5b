"""The figure of a loop's overhead: in the window by cause, arm beside arm, and on the bill."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures.colours import cause_colour, cause_place
from rlm_loop.report.figures.overhead import CACHED_PRICE, WINDOW, Growth, growths, overhead
from rlm_loop.report.figures.style import HATCHES, PAGE, SMALL, finish, marks, sheet, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Panels in a row.
_ACROSS = 3


def overhead_by_turn(
    frame: pd.DataFrame,
    *,
    arms: Iterable[str] | None = None,
    window: int = WINDOW,
    cached_price: float = CACHED_PRICE,
) -> Figure:
    """One panel an arm (overhead in the window by turn, its causes stacked), and below one of what was billed so far.

    `frame` is as for `growths`, `arms` are those to show in their order (default: all).  Raises `StudyError` where
    there is nothing to draw, or matplotlib is missing.
    """
    found = growths(frame, arms)
    order = sorted({c for g in found for c in g.causes if overhead(c)}, key=cause_place)
    across = 2 if len(found) == 4 else min(len(found), _ACROSS)
    down = -(-len(found) // across)
    longest = max(growth.turns for growth in found)
    top = max(1, *(n for growth in found for n in growth.window())) * 1.08
    with style():
        made = sheet(PAGE, 2.45 * down + 3.0)
        grid = made.add_gridspec(down + 1, across)
        for number, growth in enumerate(found):
            panel: Any = made.add_subplot(grid[number // across, number % across])
            _stack(panel, growth, order)
            panel.set_xlim(1, max(2, longest))
            panel.set_ylim(0, top)
            name = textwrap.fill(growth.arm, max(8, int((PAGE - 2.4) / across / 0.085) - 4))
            _finish(panel, f"{chr(97 + number % 26)}   {name}")
            if number % across == 0:
                panel.set_ylabel("overhead tokens in prompt")
        bill: Any = made.add_subplot(grid[down, :])
        _bill(bill, found, cached_price)
        _finish(
            bill, f"{chr(97 + len(found) % 26)}   Billed so far; dashed: what was sent before at {cached_price:.0%}"
        )
        handles, names = made.axes[0].get_legend_handles_labels()
        made.legend(handles[::-1], names[::-1], loc="outside upper left", ncols=4, frameon=False, fontsize=SMALL)
        bill.legend(loc="upper left", frameon=False, fontsize=SMALL)
    lines = [
        f"{g.arm}: {g.window()[0]:,} tokens of overhead in the prompt of turn 1, {g.window()[-1]:,} in that of turn "
        f"{g.turns} ({g.window()[-1] / window:.1%} of a window of {window:,}); {g.billed()[-1]:,.0f} billed in total, "
        f"{g.billed(cached_price=cached_price)[-1]:,.0f} if all that was sent before is cached at {cached_price:.0%}."
        for g in found
    ]
    about = "Overhead by turn, as stacked areas by cause and as lines of what was billed so far."
    made.set_label(" ".join([about, *lines]))
    return made


def _stack(axes: Any, growth: Growth, order: Sequence[str]) -> None:
    turns: list[float] = [*range(1, growth.turns + 1)]
    heights = [growth.window(lambda cause, this=cause: cause == this) for cause in order]
    if growth.turns == 1:  # an area of one point cannot be seen
        turns, heights = [1, 1.12], [[*height, *height] for height in heights]
    labels = [c.removeprefix("scaffold:").replace("_", " ") for c in order]
    colours = [cause_colour(c) for c in order]
    bands = axes.stackplot(turns, *heights, colors=colours, labels=labels, linewidth=0.5, edgecolor="white")
    for number, band in enumerate(bands):  # neighbours differ in grey too
        band.set_hatch(HATCHES[number % len(HATCHES)])


def _bill(axes: Any, found: Sequence[Growth], cached_price: float) -> None:
    """A line of what was billed so far for each arm, and a dashed one with a prompt cache."""
    for growth, mark in zip(found, marks([g.arm for g in found]).values(), strict=True):
        turns = range(1, growth.turns + 1)
        look: dict[str, Any] = {"color": mark.colour, "marker": mark.marker, "markersize": 4, "linewidth": 1.6}
        look["markevery"] = max(1, growth.turns // 6)
        axes.plot(turns, growth.billed(), "-", label=growth.arm or "this run", **look)
        axes.plot(turns, growth.billed(cached_price=cached_price), "--", **look)
    axes.set_xlim(1, max(2, *(growth.turns for growth in found)))
    axes.set_ylim(0, 1.08 * axes.get_ylim()[1])
    axes.set_ylabel("tokens of overhead so far")


def _finish(axes: Any, title: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    finish(axes, title, "turn")
