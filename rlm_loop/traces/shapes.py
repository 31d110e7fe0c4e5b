"""Shapes of a trace's events: the parts of each kind, and their types.

A trace may come from anybody, and be cut, edited or of a later version.  It is checked once, where its lines are read,
so that all that computes with events can rely on these parts.  A part that is not named here may be anything.

A shape is a type, a function that says whether a value fits, `[shape]` for a list, a tuple of alternatives, or a
dictionary for an object; `!` marks a part that must be there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast, get_args

from rlm_loop.messages import IMPOSSIBLE, Role

_NODE = re.compile(r"0(\.[0-9]{1,9})*")
_NOT_FINITE = ({"repr": "nan"}, {"repr": "inf"}, {"repr": "-inf"})


def sound(event: Any, *, complete: bool = False) -> bool:
    """Say whether a value is an event whose parts are of their types.

    With `complete`, all that its kind needs has to be there.
    """
    kind = cast("dict[str, Any]", event).get("event") if isinstance(event, dict) else None
    if not isinstance(kind, str) or not _fits(event, _ANY) or not _fits(event, _SHAPES.get(kind, {}), complete):
        return False
    return kind != "turn" or len(event.get("actions", ())) == len(event.get("observations", ()))


def _fits(value: Any, shape: Any, complete: bool = True) -> bool:
    if isinstance(shape, type):
        return isinstance(value, shape)
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return False
        for name, part in cast("dict[str, Any]", shape).items():
            key = name.removesuffix("!")
            if not (_fits(value[key], part) if key in value else not complete or key == name):
                return False
        return True
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(item, shape[0]) for item in cast("list[Any]", value))
    if isinstance(shape, tuple):
        return any(_fits(value, part) for part in cast("tuple[Any, ...]", shape))
    return shape is value if shape is None else shape(value)


def _count(value: Any) -> bool:
    return type(value) is int and -IMPOSSIBLE < value < IMPOSSIBLE


def _number(value: Any) -> bool:
    return type(value) in (int, float) and -IMPOSSIBLE < value < IMPOSSIBLE


def _node(value: Any) -> bool:
    return isinstance(value, str) and _NODE.fullmatch(value) is not None


def _role(value: Any) -> bool:
    return isinstance(value, str) and value in get_args(Role)


def _figure(value: Any) -> bool:
    """A figure of a usage: none where it is not known, and what JSON has no number for by its `repr`."""
    return value is None or _number(value) or value in _NOT_FINITE


def _part(value: Any) -> bool:
    """Cause, turn, message and tokens of a part of a prompt (`accounting.charges`)."""
    fields = cast("list[Any]", value) if isinstance(value, list) else []
    return len(fields) == 4 and isinstance(fields[0], str) and all(f is None or _count(f) for f in fields[1:])


_FIGURES = "cost input_tokens output_tokens cache_read_tokens cached_tokens cache_write_tokens reasoning_tokens"
_TEXT = (None, str)
_USAGE = (None, {"calls": _count, **dict.fromkeys(_FIGURES.split(), _figure)})
_CALLS = [{"id!": _TEXT, "name!": str, "arguments!": str}]
_SPANS = [{"text!": str, "cause!": str}]
_MESSAGE = {"role!": _role, "spans!": _SPANS, "tool_calls!": _CALLS, "tool_call_id!": _TEXT, "turn!": _count}
_TIMES = {"seconds": _number, "waited": _number}
_REPLY = {"text!": str, "tool_calls!": _CALLS, "finish_reason!": str, "usage": _USAGE, "extra": (None, dict), **_TIMES}
_PARTS = (None, {"kept!": _count, "new!": [_part]})
_CHARGED = {"call!": _count, "after!": _count, "parts!": _PARTS, "purpose!": str, "sent!": _count}
_OBSERVATIONS = [{"text!": str, "seconds": _number}]

#: Parts that every event may have, whatever its kind.
_OWNER = {"run": str, "node": _node, "parent": _node, "depth": _count, "turn": _count}
_ANY = {**_OWNER, "at": _number, "seconds": (None, _number)}
_SHAPES: Mapping[str, Mapping[str, Any]] = {
    "run_start": {"versions": dict},
    "message": {"hash!": str, "message!": _MESSAGE},
    "text": {"sha256!": str, "text!": str},
    "settings": {"hash!": str, "tools": [dict], "stop": [str], "reply_schema": (None, dict)},
    "request": {"digest!": str, "added!": [str], "base": _TEXT, "kept": _count, "settings": str},
    "reply": {"request!": str, "reply!": _REPLY, "charged": _CHARGED},
    "turn": {"turn!": _count, "actions!": [{"is!": str}], "observations!": _OBSERVATIONS, "seconds": _number},
    "subcall_start": {"node!": _node, "kind": str, "prompt_sha256": _TEXT},
    "subcall_end": {"node!": _node, "ok": bool, "saved": _USAGE},
    "run_end": {"stop": str, "working_seconds": _number, "usage": _USAGE, "steps": _count},
}
