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
HATCHES = ("", "///", "..", "xx", "---", "\\\\\\", "o")
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
    """How one arm is drawn wherever it appears."""

    colour: str
    marker: str
    line: Any
    hatch: str

    @property
    def look(self) -> dict[str, Any]:
        """What matplotlib is told of a line."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.line}


@contextmanager
def style() -> Generator[None]:
    """The settings of all figures, for a figure of your own: `with style(): figure = Figure()`.

    Raises `StudyError` where matplotlib is missing.
    """
    with matplotlib_or_say().rc_context(dict(_RC)):
        yield


def sheet(width: float, height: float) -> Figure:
    """An empty figure of so many inches that lays itself out and needs no display."""
    matplotlib_or_say()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)
    return made


def settle(made: Figure) -> None:
    """Lay the figure out once and for all, for what is placed by where all else has come to lie."""
    engine = made.get_layout_engine()
    if engine is not None:
        engine.execute(made)
        made.set_layout_engine("none")


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
    """What every panel has: a title at its left, light lines of `grid` behind the data, and what its x axis is."""
    if grid:
        axes.grid(axis=grid, color=PALE, linewidth=0.7, zorder=0)
        axes.set_axisbelow(True)
    if below:
        axes.set_xlabel(below)
    if title:
        axes.set_title(title, loc="left", y=1.0, fontsize=TITLE, fontweight="bold")  # `y`: it need not look for room


def caption(made: Figure, text: str) -> None:
    """What the numbers include, in small letters below the figure; broken into lines that fit its width."""
    inches = float(made.get_size_inches()[0])
    made.supxlabel(textwrap.fill(text, int(inches * 19)), fontsize=7, color=GREY, x=0.01, ha="left")


def lettered(number: int, name: str, inches: float) -> str:
    """The title of a panel so wide: its letter and the name of what it shows; a long name takes a line for factors."""
    room = max(8, int(inches / 0.085) - 4)
    head, bracket, factors = name.partition("[")
    parts = [head, bracket + factors] if len(name) > room and head else [name]
    lines = [line for part in parts for line in textwrap.wrap(part, room, break_long_words=False)]
    return f"{chr(97 + number % 26)}   " + "\n     ".join(lines)


def columns_of(names: Sequence[str], inches: float, most: int) -> int:
    """How many columns of a legend in small letters find room beside each other."""
    widest = 0.8 + 0.066 * max(map(len, names), default=0)
    return max(1, min(most, len(names), int(inches / widest)))


def legend_above(made: Figure, handles: Sequence[Any], *, across: int = 4) -> None:
    """What is drawn, by its label, above all panels, where it hides no data and no caption."""
    names = [str(h.get_label()) for h in handles]
    columns = columns_of(names, float(made.get_size_inches()[0]), across)
    look = {"frameon": False, "fontsize": SMALL, "handlelength": 3.4}
    made.legend(handles, names, loc="outside upper left", ncols=columns, **look)


def round_ticks(axis: Any, low: float, high: float, wording: str) -> None:
    """Ticks of a log axis at 1, 2 and 5 of every power of ten; at more where that gives fewer than two."""
    steps = [step * 10.0**power for power in range(-6, 10) for step in (1, 2, 5)]
    chosen = [s for s in steps if low <= s <= high]
    if len(chosen) > 7:
        chosen = [s for s in chosen if f"{s:e}"[0] == "1"]
    if len(chosen) < 2:
        chosen = [float(f"{end:.3g}") for end in (low, high)]
    axis.set_ticks(chosen, minor=False)
    axis.set_ticks([], minor=True)
    axis.set_major_formatter(wording)


def percent_axis(axis: Any) -> None:
    """Ticks as whole percent."""
    axis.set_major_formatter("{x:.0f} %")


def matplotlib_or_say() -> Any:
    """The library; raises `StudyError` that says how to get it."""
    try:
        import matplotlib
    except ImportError:
        raise StudyError(f"figures need matplotlib: {install_line('studies')}") from None
    return matplotlib
