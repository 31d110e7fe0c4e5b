"""Values as JSON, as an event of a trace holds a dataclass, a number, a text or any other object; and as drawings."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from math import isfinite
from pkgutil import resolve_name
from typing import Any, cast

from rlm_loop.actions import Display
from rlm_loop.traces.received import DEEPEST, shown

#: Kinds of displays that a trace holds, up to `_PICTURE` characters each: a plot, and no album.
PICTURES = ("image/png", "image/jpeg")
_PICTURE = 200_000
_WRITTEN = 14_000  # bits of a whole number that has fewer than the 4,300 digits which Python writes out


class Deferred(functools.partial[Any]):
    """A value of an event that is computed when the event is written, or never where nobody reads it."""


def plain(value: Any, level: int = 0) -> Any:
    """Return a value as JSON types: dataclasses by field with their class in `is`, NaN and objects as `{"repr": ...}`.

    So is what JSON cannot take: a number of 5,000 digits, and what lies deeper than `DEEPEST` levels.
    """
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _WRITTEN else {"repr": shown(value)}
    if level > DEEPEST:
        return {"repr": f"<{type(value).__name__}>"}
    if isinstance(value, Deferred):
        return value()
    if isinstance(value, Display):
        kept = {"data": value.data} if value.mime in PICTURES and len(value.data) <= _PICTURE else {}
        return {"is": "Display", "mime": value.mime, "characters": len(value.data), **kept}
    if is_dataclass(value) and not isinstance(value, type):
        fields = {name: plain(part, level + 1) for name, part in vars(value).items() if name[0] != "_"}
        return {"is": type(value).__name__, **fields}
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {k if isinstance(k, str) else shown(k): plain(v, level + 1) for k, v in items}
    if isinstance(value, (list, tuple)):
        return [plain(v, level + 1) for v in cast("Sequence[Any]", value)]
    if isinstance(value, (set, frozenset)):  # in a fixed order: a set's own differs from process to process
        return sorted([plain(v, level + 1) for v in cast("set[Any]", value)], key=shown)
    if isinstance(value, float) and isfinite(value):
        return float(value)
    return {"repr": shown(value)[:10_000]}


def drawing(name: str) -> Any:
    """The function or class of this full dotted name, such as one that makes HTML of a value.

    Values lie in rooms below the one that draws them, and imports go downward only.  So a value names what draws it,
    and that is loaded when a front end asks.
    """
    return resolve_name(name)
