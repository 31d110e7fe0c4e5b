"""Messages and replies as JSON by OpenTelemetry's schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rlm_loop.formats.traces.calls import arguments_of, function_of, replied
from rlm_loop.messages import Message, Reply

#: What the schema of output messages calls the reasons; others are passed on.
_FINISH = {"tool_calls": "tool_call"}


def of_request(messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The attributes of a request's messages and tools."""
    found: dict[str, Any] = {"gen_ai.input.messages": text_of([_message(m) for m in messages])}
    if tools:
        found["gen_ai.tool.definitions"] = text_of([{"type": "function", **function_of(tool)} for tool in tools])
    return found


def of_reply(reply: Reply) -> dict[str, Any]:
    """The attributes of a reply."""
    said = _message(replied(reply))
    thought = reply.extra.get("reasoning_content")
    if isinstance(thought, str) and thought:
        said["parts"].insert(0, {"type": "reasoning", "content": thought})
    said["finish_reason"] = _FINISH.get(reply.finish_reason, reply.finish_reason)
    return {"gen_ai.output.messages": text_of([said])}


def text_of(value: Any) -> str:
    """A value as an attribute: text as it is, else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        answer = {"type": "tool_call_response", "id": message.tool_call_id, "response": message.text}
        return {"role": "tool", "parts": [answer]}
    parts: list[dict[str, Any]] = [{"type": "text", "content": message.text}] if message.text else []
    for call in message.tool_calls:
        asked = {"id": call.id, "name": call.name, "arguments": arguments_of(call.arguments)}
        parts.append({"type": "tool_call", **asked})
    return {"role": message.role, "parts": parts}
