"""Rich outputs of cells: of what Jupyter offers for one, the richest form that a reader can be shown."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, cast

from rlm_loop.actions import Display

DisplayData = list[str]
"""A display on its way: its MIME type and its data, as in `Display`."""

RICH = ("image/png", "image/jpeg", "image/svg+xml", "text/html", "text/markdown", "text/latex")
"""MIME types that are kept, best first."""

MOST = 8_000_000
"""Characters of rich output that are kept of one cell; a further one that does not fit is left out."""


def richest(bundle: Mapping[str, Any]) -> DisplayData | None:
    """The best form in a MIME bundle, as Jupyter writes it: images as base64, the rest as text."""
    kind = next((k for k in RICH if bundle.get(k)), None)
    if kind is None:
        return None
    data = bundle[kind]
    if isinstance(data, bytes):
        return [kind, base64.b64encode(data).decode()]
    return [kind, "".join(cast("list[str]", data)) if isinstance(data, list) else str(data)]


def kept(displays: Iterable[DisplayData]) -> list[DisplayData]:
    """Those of a cell that fit into the limit."""
    found: list[DisplayData] = []
    room = MOST
    for display in displays:
        if len(display[1]) <= room:
            room -= len(display[1])
            found.append(display)
    return found


def displays_in(report: Mapping[str, Any]) -> tuple[Display, ...]:
    """The displays of a cell's report.  A worker is not trusted: what is not of their form is left out."""
    found: list[Display] = []
    listed = report.get("displays")
    for item in cast("list[Any]", listed) if isinstance(listed, list) else []:
        match item:
            case [str(kind), str(data)] if kind in RICH:
                found.append(Display(kind, data))
            case _:
                pass
    return tuple(found)
