"""The figure of a loop's overhead: in the window by cause, arm beside arm, and on the bill."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures.colours import cause_colour
from rlm_loop.report.figures.run_overhead import CACHED_PRICE, WINDOW, Growth, chosen_arms, overhead
from rlm_loop.report.figures.style import HATCHES, PAGE, SMALL, finish, lettered, marks, sheet, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: From the bottom of a stack to its top: what does not grow, then the markers, then what the strategy says.
_FIXED = ("tool_schema", "system", "template")
_NAMES = {"tool_schema": "tool schemas", "system": "system text", "template": "template's markers"}
#: Panels in a row.
_ACROSS = 3
_STYLES = ("-", "--")


def overhead_by_turn(
    frame: pd.DataFrame,
    *,
    arms: Iterable[str] | None = None,
    window: int = WINDOW,
    cached_price: float = CACHED_PRICE,
) -> Figure:
    """One panel an arm (overhead in the window by turn, its causes stacked), and below one of what was billed so far.

    `frame` is as for `growths`, `arms` are those to show in their order (default: all).  The figure's alternative text
    is its label (`figure.get_label()`).  Raises `StudyError` where there is nothing to draw, or matplotlib is missing.
    """
    found = chosen_arms(frame, arms)
    order = _order(found)
    across = 2 if len(found) == 4 else min(len(found), _ACROSS)
    down = -(-len(found) // across)
    longest = max(growth.turns for growth in found)
    top = max(1, *(n for growth in found for n in growth.window())) * 1.08
    with style():
        made = sheet(PAGE, 2.45 * down + 3.0)
        made.get_layout_engine().set(wspace=0.05)  # type: ignore[union-attr]
        grid = made.add_gridspec(down + 1, across)
        for number, growth in enumerate(found):
            panel: Any = made.add_subplot(grid[number // across, number % across])
            _stack(panel, growth, order)
            panel.set_xlim(1, max(2, longest))
            panel.set_ylim(0, top)
            _finish(panel, lettered(number, growth.arm, (PAGE - 2.4) / across))
            if number % across:
                panel.tick_params(labelleft=False)
            else:
                panel.set_ylabel("overhead tokens in prompt")
            if number % across == across - 1 or growth is found[-1]:
                _shares(panel, window)
        bill: Any = made.add_subplot(grid[down, :])
        _bill(bill, found, cached_price)
        _finish(bill, lettered(len(found), f"Billed so far; dashed: what was sent before at {cached_price:.0%}", PAGE))
        handles, names = made.axes[0].get_legend_handles_labels()
        made.legend(handles[::-1], names[::-1], loc="outside upper left", ncols=4, frameon=False, fontsize=SMALL)
        bill.legend(loc="upper left", frameon=False, fontsize=SMALL)
    made.set_label(_told(found, window, cached_price))
    return made


def _order(found: Sequence[Growth]) -> list[str]:
    there = dict.fromkeys(c for g in found for c in g.causes if overhead(c))
    return [*(c for c in _FIXED if c in there), *(c for c in there if c not in _FIXED)]


def _stack(axes: Any, growth: Growth, order: Sequence[str]) -> None:
    turns: list[float] = [*range(1, growth.turns + 1)]
    heights = [growth.window(lambda cause, this=cause: cause == this) for cause in order]
    if growth.turns == 1:  # an area of one point cannot be seen
        turns, heights = [1, 1.12], [[*height, *height] for height in heights]
    labels = [_NAMES.get(c, c.removeprefix("scaffold:").replace("_", " ")) for c in order]
    colours = [cause_colour(c) for c in order]
    bands = axes.stackplot(turns, *heights, colors=colours, labels=labels, linewidth=0.5, edgecolor="white")
    for number, band in enumerate(bands):  # neighbours differ in grey too
        band.set_hatch(HATCHES[number % len(HATCHES)])


def _bill(axes: Any, found: Sequence[Growth], cached_price: float) -> None:
    """Draw what was billed."""
    for growth, mark in zip(found, marks([g.arm for g in found]).values(), strict=True):
        turns = range(1, growth.turns + 1)
        for line, price in zip(_STYLES, (1.0, cached_price), strict=True):
            billed = growth.billed(cached_price=price)
            look: dict[str, Any] = {"color": mark.colour, "marker": mark.marker, "markersize": 4}
            look["label"] = growth.arm or "this run" if line == _STYLES[0] else None
            axes.plot(turns, billed, line, linewidth=1.6, markevery=max(1, growth.turns // 6), **look)
    axes.set_xlim(1, max(2, *(growth.turns for growth in found)))
    axes.set_ylim(0, 1.08 * axes.get_ylim()[1])
    axes.set_ylabel("tokens of overhead so far")


def _shares(panel: Any, window: int) -> None:
    """The right axis: what the tokens are of a window."""
    shares = panel.secondary_yaxis("right", functions=_shares_of(window))
    shares.yaxis.set_major_formatter("{x:g} %")
    shares.set_ylabel(f"of a window of {window:,}", fontsize=SMALL)


def _shares_of(window: int) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Tokens to percent of the window, and back."""
    return (lambda tokens: 100 * tokens / window, lambda percent: percent * window / 100)


def _finish(axes: Any, title: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    finish(axes, title, "turn")


def _told(found: Sequence[Growth], window: int, cached_price: float) -> str:
    lines = [
        f"{g.arm}: {g.window()[0]:,} tokens of overhead in the prompt of turn 1, {g.window()[-1]:,} in that of turn "
        f"{g.turns} ({g.window()[-1] / window:.1%} of a window of {window:,}); {g.billed()[-1]:,.0f} billed in total, "
        f"{g.billed(cached_price=cached_price)[-1]:,.0f} if all that was sent before is cached at {cached_price:.0%}."
        for g in found
    ]
    return "Overhead by turn, as stacked areas by cause and as lines of what was billed so far. " + " ".join(lines)
