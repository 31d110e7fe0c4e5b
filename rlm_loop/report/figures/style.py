"""The one style of all figures, their colours, and saving them with an alternative text."""

from __future__ import annotations

import base64
import io
import re
import textwrap
import zlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.errors import install_line
from rlm_loop.study.errors import StudyError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: From Okabe and Ito's colours and neighbours of them; what a strategy adds (`scaffold:...`) is in reds, to stand out.
CAUSE_COLOURS = {
    "template": "#8C8C8C",
    "system": "#0072B2",
    "tool_schema": "#CC79A7",
    "task": "#009E73",
    "assistant": "#56B4E9",
    "repl_output": "#E69F00",
    "tool_result": "#B8860B",
    "error": "#D55E00",
    "summary": "#7B61B8",
    "unattributed": "#C4C4C4",
}
_SCAFFOLD = ("#A8123E", "#E0457B", "#7A1F5C", "#F0776B")
_OTHER = "#A6A6A6"


def cause_colour(cause: str) -> str:
    """The colour of a cause as `#RRGGBB`; the same in every run for the same injector, grey for an unknown cause."""
    if cause.startswith("scaffold:"):
        return _SCAFFOLD[zlib.crc32(cause.encode()) % len(_SCAFFOLD)]
    return CAUSE_COLOURS.get(cause, _OTHER)


def cause_place(cause: str) -> tuple[int, str]:
    """The sort key that stacks causes: what is fixed first, then what a strategy adds, then what turns add."""
    order = list(CAUSE_COLOURS)
    if cause.startswith("scaffold:"):
        return order.index("assistant") * 2 - 1, cause
    return (order.index(cause) * 2 if cause in CAUSE_COLOURS else 2 * len(order)), cause


#: Okabe and Ito's colours, which stay apart in the common forms of colour blindness; yellow is left out for contrast.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
#: The place in `COLOURS` of the arms that several studies have, so that an arm has one colour in all figures.
ARM_PLACES = {"lean": 0, "react-text": 1, "code": 2, "react-native": 3, "mellea-react": 3, "lean-text": 5}


#: Several of those colours are the same grey on paper, so that every arm has a mark and a line of its own too.
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
    "font.sans-serif": ["DejaVu Sans", "sans-serif"],  # an SVG names them at each text
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
    """The colour, mark and line of one arm in all figures."""

    colour: str
    marker: str
    line: Any


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
    """An empty figure of so many inches that lays itself out, and is a picture where Matplotlib is not set up."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made: Any = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)
    made._repr_png_ = lambda: _bytes(made, ".png", None, dots=120)  # IPython asks for it
    return made


def marks(arms: Sequence[str]) -> dict[str, ArmStyle]:
    """The mark of each arm, the same in all figures for the arms of `ARM_PLACES`, else the first that is free.

    From the eighth arm on colours come again, with other marks.
    """
    own: dict[str, int] = {}
    for arm in arms:
        place = ARM_PLACES.get(arm.partition(",")[0])  # with several models a label is "arm, model"
        if place is not None and place not in own.values():
            own[arm] = place
    free = (place for place in range(len(ARM_PLACES) + len(arms)) if place not in own.values())
    found: dict[str, ArmStyle] = {}
    for arm in arms:
        turn, at = divmod(own[arm] if arm in own else next(free), len(COLOURS))
        other = (at + turn) % len(COLOURS)
        found[arm] = ArmStyle(COLOURS[at], MARKERS[other], LINES[other])
    return found


def finish(axes: Any, title: str = "", below: str = "", *, grid: str = "y") -> None:
    """Add a title at the left, light lines of `grid` behind the data, and the name of the x axis."""
    axes.grid(axis=grid, color=PALE, linewidth=0.7, zorder=0)
    axes.set_axisbelow(True)
    axes.set_xlabel(below)
    axes.set_title(title, loc="left", y=1.0, fontsize=TITLE, fontweight="bold")  # `y`: it need not look for room


def caption(made: Figure, text: str) -> None:
    """Add small letters below the figure, broken into lines that fit its width."""
    inches = float(made.get_size_inches()[0])
    made.supxlabel(textwrap.fill(text, int(inches * 19)), fontsize=7, color=GREY, x=0.01, ha="left")


def legend_above(made: Figure, handles: Sequence[Any], *, across: int = 4) -> None:
    """Add a legend above all panels, where it hides no data and no caption; the figure grows by its rows."""
    names = [str(h.get_label()) for h in handles]
    widest = 0.8 + 0.062 * max(map(len, names), default=0)  # inches of a column
    width, height = map(float, made.get_size_inches())
    columns = max(1, min(across, len(names), int(width / widest)))
    made.set_size_inches(width, height + 0.16 * max(0, -(-len(names) // columns) - 2))
    look = {"frameon": False, "fontsize": SMALL, "handlelength": 3.4}
    made.legend(handles, names, loc="outside upper left", ncols=columns, **look)


@dataclass(frozen=True)
class Panels:
    """The axes of a figure: those of a new figure (`own`), or of its user's."""

    axes: Sequence[Any]
    own: bool

    def finished(self, words: str, note: str = "", handles: Sequence[Any] = ()) -> Figure:
        """Add a caption, a legend and the alternative text, and return the figure."""
        first, made = self.axes[0], self.axes[0].figure
        if self.own and note:
            caption(made, note)
        elif note:
            look = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "top", "color": GREY}
            first.annotate(textwrap.fill(note, 60), (0, 0), (0, -34), fontsize=7, **look)
        if self.own and handles:
            legend_above(made, handles)
        elif handles:
            first.legend(handles=handles, loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=SMALL)
        made.set_label(" ".join(filter(None, [made.get_label(), words])))
        return made


def panels(axes: Any, mosaic: Sequence[Sequence[Any]], height: float, width: float = PAGE, **shared: Any) -> Panels:
    """Return the panels that a mosaic names (0, 1 ...), of a new figure where no `axes` are given, one for each."""
    count = 1 + max(name for row in mosaic for name in row)
    if axes is None:
        figure: Any = sheet(width, height)
        made = figure.subplot_mosaic(mosaic, empty_sentinel=-1, **shared)
        return Panels([made[name] for name in range(count)], own=True)
    given = [axes] if hasattr(axes, "plot") else list(getattr(axes, "flat", axes))
    if len(given) != count:
        raise StudyError(f"axes must be {count} of matplotlib, one for each panel, got {len(given)}")
    return Panels(given, own=False)


def whiskers(points: Iterable[tuple[float, float, float]]) -> list[list[float]]:
    """Return the lengths of the intervals (middle, low, high) below and above the middle, as matplotlib takes them."""
    found = list(points)
    return [
        [max(0.0, middle - low) for middle, low, _ in found],
        [max(0.0, high - middle) for middle, _, high in found],
    ]


#: The format of ticks of percent.
PERCENT = "{x:.0f} %"
_FORMATS = (".png", ".svg", ".pdf")


def alt_text(figure: Figure) -> str:
    """The text for a reader who cannot see a figure of this package: what is drawn, and the numbers."""
    return str(figure.get_label())


def save(figure: Figure, path: str | Path) -> list[Path]:
    """Save a figure with its alternative text in the file; the same figure gives the same bytes.  Returns the paths.

    The ending chooses: `.png` (200 dots an inch), `.svg` or `.pdf`; a path without one gives PNG and SVG.  The text is
    the `Description` of a PNG and an SVG, the `Subject` of a PDF.  Raises `StudyError` for
    another ending, and where the file cannot be written.
    """
    whole = Path(path)
    wanted = [whole]
    if whole.suffix.lower() not in _FORMATS:
        if re.fullmatch(r"\.[a-zA-Z]{2,4}", whole.suffix):
            raise StudyError(f"cannot save a figure as {whole.suffix}; use one of {', '.join(_FORMATS)}")
        wanted = [whole.with_name(f"{whole.name}{ending}") for ending in _FORMATS[:2]]
    try:
        whole.parent.mkdir(parents=True, exist_ok=True)
        for one in wanted:
            one.write_bytes(_bytes(figure, one.suffix.lower(), alt_text(figure) or None))
    except OSError as error:
        raise StudyError(f"cannot write to {whole.parent}: {error.strerror}; choose another folder") from error
    return wanted


def data_uri(figure: Figure) -> str:
    """The figure as an SVG in a `data:` address, for an `<img>` of a page that needs no other file.

    Letters are text in the reader's own font: as shapes they take half of the time and most of the bytes.
    """
    drawn = re.sub(rb">\s+<", b"><", _bytes(figure, ".svg", None))
    return "data:image/svg+xml;base64," + base64.b64encode(drawn).decode("ascii")


def _bytes(figure: Figure, suffix: str, words: str | None, dots: int = 200) -> bytes:
    metadata = {
        ".png": {"Software": None, "Description": words},
        ".svg": {"Date": None, "Description": words},
        ".pdf": {"CreationDate": None, "Subject": words},
    }
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format=suffix[1:], dpi=dots if suffix == ".png" else "figure", metadata=metadata[suffix])
    return buffer.getvalue()
