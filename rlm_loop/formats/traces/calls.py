"""An action as a tool call, which is what other formats have, and back.

A cell is a call of `python` with its code.  What a tool call cannot say of an action (that it was read out of plain
text, what the parser noticed) goes under the key `rlm_loop`, and the same for what a result cannot say: the kind of a
failure, the answer that was given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, cast

from rlm_loop.actions import Action, Answer, CallTool, Malformed, Observation, RunCode
from rlm_loop.messages import Message, Reply, Span, ToolCall
from rlm_loop.traces.values import plain

#: The key under which a format holds what only we have.
OURS = "rlm_loop"
PYTHON = "python"


@dataclass(frozen=True)
class Called:
    """A tool call: `id` is unique within its turn, `rest` what only we have of the action."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    rest: Mapping[str, Any]


def called(action: Action, id: str) -> Called | None:
    """An action as a tool call, with that id where it has none; `None` for what asks for nothing to be run."""
    rest = changed(action)
    id = action.call_id or id
    match action:
        case RunCode():
            rest.pop("code", None)
            return Called(id, PYTHON, {"code": action.code}, rest)
        case CallTool():
            arguments = arguments_of(action.arguments)
            rest.pop("name", None)
            if json.dumps(arguments, ensure_ascii=False) == action.arguments:
                rest.pop("arguments", None)
            return Called(id, action.name, arguments, rest)
        case Answer() | Malformed():
            return None


def arguments_of(text: str) -> dict[str, Any]:
    """Arguments as an object; text that is none is kept under `arguments`."""
    try:
        value: Any = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        value = None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"arguments": text}


def with_ids(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """Tool calls of a message; one without an id is named by its place."""
    return [replace(call, id=call.id or f"call_{n}") for n, call in enumerate(calls, 1)]


def function_of(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Name, description and parameters of an offered tool."""
    return tool.get("function") or tool


def rest_of(observation: Observation) -> dict[str, Any]:
    """What a result with a text cannot say of an observation."""
    return changed(observation, "is", "text")


def rest_of_reply(reply: Reply) -> dict[str, Any]:
    """What a message and its usage cannot say of a reply."""
    return changed(reply, "is", "text", "usage")


def replied(reply: Reply) -> Message:
    """The message that a reply is."""
    return spoken("assistant", reply.text, calls=reply.tool_calls)


_CAUSES = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool_result"}


def spoken(
    role: Any, text: str, *, turn: int = 0, cause: str = "", calls: Sequence[ToolCall] = (), id: str | None = None
) -> Message:
    """A message that others recorded: one text, charged to `cause` or to what its role says."""
    return Message(role, (Span(text, cause or _CAUSES[role]),) if text else (), tuple(calls), id, turn)


def changed(value: Any, *told: str) -> dict[str, Any]:
    """The fields of a dataclass that are not as they are by default, as JSON, with its class under `is`; without those
    that are `told` elsewhere."""
    found: dict[str, Any] = plain(value)
    for f in fields(value):
        usual = f.default_factory() if f.default_factory is not MISSING else f.default
        if usual is not MISSING and found[f.name] == plain(usual):
            del found[f.name]
    return {name: stored for name, stored in found.items() if name not in told}
