"""The shape of a trace's events: which parts each kind has, and of which type.

A trace may come from anybody, and be cut, edited or of a later version.  It is checked once, where its lines are read,
so that all that computes with events can rely on these parts.  What is not named here may be anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast, get_args

from rlm_loop.messages import IMPOSSIBLE, Role

Kind = Callable[[Any], bool]

_NODE = re.compile(r"0(\.[0-9]{1,9})*")


def sound(event: Any, *, complete: bool = False) -> bool:
    """Whether a value is an event whose parts are of their types; with `complete`, all that its kind needs is there."""
    if not isinstance(event, dict) or not isinstance(kind := cast("Any", event.get("event")), str):
        return False
    found = cast("dict[str, Any]", event)
    parts = (*_ANY.items(), *_SHAPES.get(kind, {}).items())
    if not all(of(found[name.lower()]) if name.lower() in found else _may_lack(name, complete) for name, of in parts):
        return False
    return kind != "turn" or len(found.get("actions", ())) == len(found.get("observations", ()))


def _may_lack(name: str, complete: bool) -> bool:
    return not (complete and name.isupper())


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _object(value: Any) -> bool:
    return isinstance(value, dict)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _count(value: Any) -> bool:
    return type(value) is int and -IMPOSSIBLE < value < IMPOSSIBLE


def _number(value: Any) -> bool:
    return type(value) in (int, float) and -IMPOSSIBLE < value < IMPOSSIBLE


def _node(value: Any) -> bool:
    return isinstance(value, str) and _NODE.fullmatch(value) is not None


def _role(value: Any) -> bool:
    return isinstance(value, str) and value in get_args(Role)


def _maybe(kind: Kind) -> Kind:
    return lambda value: value is None or kind(value)


def _each(kind: Kind) -> Kind:
    return lambda value: isinstance(value, list) and all(map(kind, cast("list[Any]", value)))


def _parts(**kinds: Kind) -> Kind:
    """An object with these parts; a name in capitals is required."""
    named = [(name.lower(), name.isupper(), kind) for name, kind in kinds.items()]

    def holds(value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        found = cast("Mapping[str, Any]", value)
        return all(kind(found[name]) if name in found else not required for name, required, kind in named)

    return holds


def _figure(value: Any) -> bool:
    """A figure of a usage: none where it is not known, and what JSON has no number for by its `repr`."""
    return value is None or _number(value) or value in ({"repr": "nan"}, {"repr": "inf"}, {"repr": "-inf"})


_FIGURES = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)
_usage = _parts(calls=_count, cost=_figure, **dict.fromkeys(_FIGURES, _figure))
_calls = _each(_parts(ID=_maybe(_text), NAME=_text, ARGUMENTS=_text))
_message = _parts(
    ROLE=_role,
    SPANS=_each(_parts(TEXT=_text, CAUSE=_text)),
    TOOL_CALLS=_calls,
    TOOL_CALL_ID=_maybe(_text),
    TURN=_count,
)
_reply = _parts(
    TEXT=_text,
    TOOL_CALLS=_calls,
    FINISH_REASON=_text,
    usage=_maybe(_usage),
    seconds=_number,
    waited=_number,
    extra=_maybe(_object),
)


def _part(value: Any) -> bool:
    """Cause, turn, message and tokens of a part of a prompt (`accounting.charges`)."""
    fields = cast("list[Any]", value) if isinstance(value, list) else []
    return len(fields) == 4 and isinstance(fields[0], str) and all(f is None or _count(f) for f in fields[1:])


_charged = _parts(
    CALL=_count, AFTER=_count, PARTS=_maybe(_parts(KEPT=_count, NEW=_each(_part))), PURPOSE=_text, SENT=_count
)

#: What every event may have, whatever its kind: whose it is, and when it was.
_ANY: Mapping[str, Kind] = {
    "run": _text,
    "node": _node,
    "parent": _node,
    "depth": _count,
    "turn": _count,
    "at": _number,
    "seconds": _maybe(_number),
}
#: By the kind of event; a name in capitals is needed.
_SHAPES: Mapping[str, Mapping[str, Kind]] = {
    "run_start": {"versions": _object},
    "message": {"HASH": _text, "MESSAGE": _message},
    "text": {"SHA256": _text, "TEXT": _text},
    "settings": {"HASH": _text, "tools": _each(_object), "stop": _each(_text), "reply_schema": _maybe(_object)},
    "request": {"DIGEST": _text, "ADDED": _each(_text), "base": _maybe(_text), "kept": _count, "settings": _text},
    "reply": {"REQUEST": _text, "REPLY": _reply, "charged": _charged},
    "turn": {
        "TURN": _count,
        "ACTIONS": _each(_parts(IS=_text)),
        "OBSERVATIONS": _each(_parts(TEXT=_text, seconds=_number)),
        "seconds": _number,
    },
    "subcall_start": {"NODE": _node, "kind": _text, "prompt_sha256": _maybe(_text)},
    "subcall_end": {"NODE": _node, "ok": _flag, "saved": _maybe(_usage)},
    "run_end": {"stop": _text, "working_seconds": _number, "usage": _maybe(_usage), "steps": _count},
}
