"""A figure's alternative text, and files that keep it."""

from __future__ import annotations

import base64
import html
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.report.figures.style import style
from rlm_loop.study.errors import StudyError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FORMATS = (".png", ".svg", ".pdf")


def alt_text(figure: Figure) -> str:
    """The text for a reader who cannot see a figure of this package: what is drawn, and the numbers."""
    return str(figure.get_label())


def save(figure: Figure, path: str | Path) -> list[Path]:
    """Save a figure with its alternative text in the file; the same figure gives the same bytes.  Returns the paths.

    The ending chooses: `.png` (200 dots an inch), `.svg` or `.pdf`; a path without one gives PNG and SVG.  The text is
    the `Description` of a PNG, the `<desc>` and description of an SVG, the `Subject` of a PDF.  Raises `StudyError` for
    another ending, and where the file cannot be written.
    """
    whole = Path(path)
    wanted = (
        [whole] if whole.suffix.lower() in _FORMATS else [whole.with_name(f"{whole.name}{s}") for s in _FORMATS[:2]]
    )
    if whole.suffix and whole.suffix.lower() not in _FORMATS and re.fullmatch(r"\.[a-zA-Z]{2,4}", whole.suffix):
        raise StudyError(f"cannot save a figure as {whole.suffix}; use one of {', '.join(_FORMATS)}")
    try:
        whole.parent.mkdir(parents=True, exist_ok=True)
        for one in wanted:
            one.write_bytes(_bytes(figure, one.suffix.lower()))
    except OSError as error:
        raise StudyError(f"cannot write to {whole.parent}: {error.strerror}; choose another folder") from error
    return wanted


def data_uri(figure: Figure, kind: str = "png") -> str:
    """The figure as a PNG (or an SVG) in a `data:` address, for an `<img>` of a page that needs no other file.

    Letters of an SVG are text in the reader's own font: as shapes they take half of the time and most of the bytes.
    """
    named = {"png": "image/png", "svg": "image/svg+xml"}[kind]
    return f"data:{named};base64," + base64.b64encode(_bytes(figure, f".{kind}")).decode("ascii")


def _bytes(figure: Figure, suffix: str) -> bytes:
    words = alt_text(figure)
    metadata: dict[str, Any] = {
        ".png": {"Software": None, "Description": words or None},
        ".svg": {"Date": None, "Description": words or None},
        ".pdf": {"CreationDate": None, "Subject": words or None},
    }[suffix]
    buffer = io.BytesIO()
    with style():
        if suffix == ".svg":
            buffer.write(_svg_text(figure, metadata).encode("utf-8"))
        else:
            figure.savefig(buffer, format=suffix[1:], dpi=200 if suffix == ".png" else "figure", metadata=metadata)
    made = buffer.getvalue()
    if suffix == ".svg" and words:  # screen readers know <desc>, not the RDF that matplotlib writes
        start = made.index(b">", made.index(b"<svg")) + 1
        made = made[:start] + f"\n <desc>{html.escape(words, quote=False)}</desc>".encode() + made[start:]
    return made


def _svg_text(figure: Figure, metadata: dict[str, Any]) -> str:
    """What `savefig` does, but with one drawing in place of two: `savefig` lays out by a drawing of its own."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    canvas, dots, text = figure.canvas, figure.dpi, io.StringIO()
    try:
        FigureCanvasSVG(figure).print_svg(text, metadata=metadata)
    finally:
        figure.dpi = dots
        figure.set_canvas(canvas)
    return text.getvalue()
