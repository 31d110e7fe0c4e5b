"""The one style of all figures: colours, marks, lines and hatches that stay apart in grey and for the colour-blind."""

from __future__ import annotations

import textwrap
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlm_loop.errors import install_line
from rlm_loop.report.figures.colours import COLOURS, arm_places
from rlm_loop.study.errors import StudyError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Several of those colours are the same grey on paper, so that every arm has a mark, a line and a hatch of its own too.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 3)))
HATCHES = ("", "//", "||", "xx", "--", "\\\\", "++")  # straight lines: an SVG repeats each stroke
GREY = "#555555"
PALE = "#e4e4e4"
#: Inches: the text of an A4 or letter page.
PAGE = 7.0
SMALL, TITLE = 8.0, 9.5

_RC: Mapping[str, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.8,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "hatch.linewidth": 0.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "rlm-loop",
    "pdf.fonttype": 42,
}


@dataclass(frozen=True)
class ArmStyle:
    """The colour, mark, line and hatch of one arm in all figures."""

    colour: str
    marker: str
    line: Any
    hatch: str


@contextmanager
def style() -> Generator[None]:
    """The settings of all figures, for a figure of your own: `with style(): figure = Figure()`.

    Raises `StudyError` where matplotlib is missing.
    """
    try:
        import matplotlib
    except ImportError:
        raise StudyError(f"figures need matplotlib: {install_line('studies')}") from None
    settings: Any = dict(_RC)
    with matplotlib.rc_context(settings):
        yield


def sheet(width: float, height: float) -> Figure:
    """An empty figure of so many inches that lays itself out and needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from rlm_loop.report.figures.shown import ShownFigure

    made = ShownFigure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)
    return made


def marks(arms: Sequence[str]) -> dict[str, ArmStyle]:
    """The mark of each arm, the same in all figures for the arms of `ARM_PLACES`, else by its place among the arms.

    From the eighth arm on colours come again, with other marks.
    """
    found: dict[str, ArmStyle] = {}
    for arm, number in zip(arms, arm_places(arms), strict=True):
        at, turn = number % len(COLOURS), number // len(COLOURS)
        other = (at + turn) % len(COLOURS)
        found[arm] = ArmStyle(COLOURS[at], MARKERS[other], LINES[other], HATCHES[other])
    return found


def finish(axes: Any, title: str = "", below: str = "", *, grid: str = "y") -> None:
    """Add a title at the left, light lines of `grid` behind the data, and the name of the x axis."""
    if grid:
        axes.grid(axis=grid, color=PALE, linewidth=0.7, zorder=0)
        axes.set_axisbelow(True)
    if below:
        axes.set_xlabel(below)
    if title:
        axes.set_title(title, loc="left", y=1.0, fontsize=TITLE, fontweight="bold")  # `y`: it need not look for room


def caption(made: Figure, text: str) -> None:
    """Add small letters below the figure, broken into lines that fit its width."""
    inches = float(made.get_size_inches()[0])
    made.supxlabel(textwrap.fill(text, int(inches * 19)), fontsize=7, color=GREY, x=0.01, ha="left")


def legend_above(made: Figure, handles: Sequence[Any], *, across: int = 4) -> None:
    """Add a legend above all panels, where it hides no data and no caption."""
    names = [str(h.get_label()) for h in handles]
    widest = 0.8 + 0.066 * max(map(len, names), default=0)  # inches of a column
    columns = max(1, min(across, len(names), int(float(made.get_size_inches()[0]) / widest)))
    look = {"frameon": False, "fontsize": SMALL, "handlelength": 3.4}
    made.legend(handles, names, loc="outside upper left", ncols=columns, **look)


def percent_axis(axis: Any) -> None:
    """Show ticks as whole percent."""
    axis.set_major_formatter("{x:.0f} %")
