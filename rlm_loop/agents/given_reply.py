"""What `complete()` of a model gave back, checked: a model may be anybody's own class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast, get_args

from rlm_loop.messages import FinishReason, Reply, ToolCall, Usage


def given_reply(given: Any, model: str) -> Reply:
    """The reply, with calls as a tuple and figures in Python's own numbers, as a trace can hold them.

    Raises `TypeError`, which names the part that is of another type.
    """
    if not isinstance(given, Reply):
        raise TypeError(f"complete() of {model} returned {given!r:.60}: return a Reply (rlm_loop.messages)")
    for name, right, needed in _wanted(given):
        if not right:
            found = getattr(given, name)
            raise TypeError(f"complete() of {model} returned a Reply whose {name} is {found!r:.60}: {needed}")
    usage = None if given.usage is None else given.usage.plain()
    if usage is given.usage and type(given.tool_calls) is tuple:
        return given
    return replace(given, usage=usage, tool_calls=tuple(given.tool_calls))


def _wanted(reply: Reply) -> tuple[tuple[str, bool, str], ...]:
    """Part, whether it is right, and what is needed there."""
    return (
        ("text", isinstance(reply.text, str), "it is a text, empty where nothing was said"),
        ("tool_calls", _calls(reply.tool_calls), "ToolCalls, each with a name and arguments that are JSON text"),
        ("finish_reason", reply.finish_reason in get_args(FinishReason), f"one of {get_args(FinishReason)}"),
        ("usage", reply.usage is None or isinstance(reply.usage, Usage), "a Usage, or None where it is not known"),
        ("seconds", _finite(reply.seconds), "it is an int or a float, and finite"),
        ("waited", _finite(reply.waited), "it is an int or a float, and finite"),
        ("extra", isinstance(reply.extra, Mapping), "it is a mapping"),
    )


def _finite(given: Any) -> bool:
    return isinstance(given, int | float) and math.isfinite(given)


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
