"""What `complete()` of a model gave back, checked: a model may be anybody's own class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast, get_args

from rlm_loop.messages import FinishReason, Reply, ToolCall, Usage

_NUMBER = (int, float)
_REASONS = get_args(FinishReason)
_CALLS = "ToolCalls, each with a name and arguments that are JSON text"
_FINITE = "it is an int or a float, and finite"


def given_reply(given: Any, model: str) -> Reply:
    """The reply, with calls as a tuple and figures in Python's own numbers, as a trace can hold them.

    Raises `TypeError`, which names the part that is of another type.
    """
    if not isinstance(given, Reply):
        raise TypeError(f"complete() of {model} returned {given!r:.60}: return a Reply (rlm_loop.messages)")
    seconds, waited = given.seconds, given.waited
    wanted = (  # in place, since it is on the way of every reply
        ("text", isinstance(given.text, str), "it is a text, empty where nothing was said"),
        ("tool_calls", given.tool_calls == () or _calls(given.tool_calls), _CALLS),
        ("finish_reason", given.finish_reason in _REASONS, f"one of {_REASONS}"),
        ("usage", given.usage is None or isinstance(given.usage, Usage), "a Usage, or None where it is not known"),
        ("seconds", isinstance(seconds, _NUMBER) and math.isfinite(seconds), _FINITE),
        ("waited", isinstance(waited, _NUMBER) and math.isfinite(waited), _FINITE),
        ("extra", isinstance(given.extra, Mapping), "it is a mapping"),
    )
    for name, right, needed in wanted:
        if not right:
            found = getattr(given, name)
            raise TypeError(f"complete() of {model} returned a Reply whose {name} is {found!r:.60}: {needed}")
    usage = None if given.usage is None else given.usage.plain()
    if usage is given.usage and type(given.tool_calls) is tuple:
        return given
    return replace(given, usage=usage, tool_calls=tuple(given.tool_calls))


def _calls(given: Any) -> bool:
    if type(given) not in (tuple, list):
        return False
    return all(
        isinstance(call, ToolCall)
        and isinstance(call.name, str)
        and isinstance(call.arguments, str)
        and isinstance(call.id, str | None)
        for call in cast("list[Any]", given)
    )
