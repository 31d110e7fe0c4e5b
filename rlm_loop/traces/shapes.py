"""Shapes of a trace's events: the parts of each kind, and their types.

A trace may come from anybody, and be cut, edited or of a later version.  It is checked once, where its lines are read,
so that all that computes with events can rely on these parts.  A part that is not named here may be anything.

A shape is a type, a function that says whether a value fits, `[shape]` for a list, a tuple of alternatives, or a
dictionary for an object; `!` marks a part that must be there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args

from rlm_loop.messages import Role


def sound(event: Any) -> bool:
    """Say whether a value is an event that has the parts it needs, each of its type."""
    if not _fits(event, _ANY) or not _fits(event, _SHAPES.get(event["event"], {})):
        return False
    return event["event"] != "turn" or len(event.get("actions", ())) == len(event.get("observations", ()))


def _fits(value: Any, shape: Any) -> bool:
    if isinstance(shape, dict):
        return isinstance(value, dict) and all(
            _fits(value[key], part) if (key := name.removesuffix("!")) in value else key == name
            for name, part in shape.items()
        )
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(item, shape[0]) for item in value)
    if isinstance(shape, tuple):
        return any(_fits(value, part) for part in shape)
    return isinstance(value, shape) if isinstance(shape, type) else shape is value if shape is None else shape(value)


def _number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e15  # tokens, dollars, seconds that no run reaches


def _count(value: Any) -> bool:
    return type(value) is int and _number(value)


def _node(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"0(\.[0-9]{1,9})*", value) is not None


_FIGURES = "cost input_tokens output_tokens cache_read_tokens cached_tokens cache_write_tokens reasoning_tokens"
_TEXT = (None, str)
#: JSON has no number for these, so a trace has their `repr`.
_NOT_FINITE = {"repr!": ("nan", "inf", "-inf").__contains__}
_USAGE = (None, {"calls": _count, **dict.fromkeys(_FIGURES.split(), (None, _number, _NOT_FINITE))})
_CALLS = [{"id!": _TEXT, "name!": str, "arguments!": str}]
_SPANS = [{"text!": str, "cause!": str}]
_SAID = {"tool_calls!": _CALLS, "tool_call_id!": _TEXT, "turn!": _count}
_MESSAGE = {"role!": get_args(Role).__contains__, "spans!": _SPANS, **_SAID}
_TIMES = {"seconds": _number, "waited": _number}
_REPLY = {"text!": str, "tool_calls!": _CALLS, "finish_reason!": str, "usage": _USAGE, "extra": (None, dict), **_TIMES}
_OBSERVATIONS = [{"text!": str, "seconds": _number, "displays": [{"mime": str, "data": str}]}]

#: Parts that every event may have, whatever its kind.
_OWNER = {"run": str, "node": _node, "parent": _node, "depth": _count, "turn": _count}
_ANY = {"event!": str, **_OWNER, "at": _number, "seconds": (None, _number)}
_SHAPES: Mapping[str, Mapping[str, Any]] = {
    "message": {"hash!": str, "message!": _MESSAGE},
    "text": {"sha256!": str, "text!": str},
    "settings": {"hash!": str, "tools": [dict], "stop": [str], "reply_schema": (None, dict)},
    "request": {"digest!": str, "added!": [str], "base": _TEXT, "kept": _count, "settings": str},
    "reply": {"request!": str, "reply!": _REPLY, "charged": dict},
    "turn": {"turn!": _count, "actions!": [{"is!": str}], "observations!": _OBSERVATIONS, "seconds": _number},
    "subcall_start": {"node!": _node, "kind": str, "prompt_sha256": _TEXT},
    "subcall_end": {"node!": _node, "ok": bool},
    "run_end": {"stop": str, "working_seconds": _number, "usage": _USAGE, "steps": _count},
}
