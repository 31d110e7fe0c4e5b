"""Displays of a cell, as the host takes them from a process that is not trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from rlm_loop.actions import Display
from rlm_loop.repl.worker import MOST_DISPLAYED, MOST_DISPLAYS, RICH


def displays_in(report: Mapping[str, Any]) -> tuple[Display, ...]:
    """Return the displays in a cell's report; what is not of their form, or too large, is left out."""
    displays: list[Display] = []
    listed = report.get("displays")
    room = MOST_DISPLAYED
    for item in cast("list[Any]", listed)[:MOST_DISPLAYS] if isinstance(listed, list) else []:
        match item:
            case [str(kind), str(data)] if kind in RICH and len(data) <= room:
                room -= len(data)
                displays.append(Display(kind, data))
            case _:
                pass
    return tuple(displays)
