"""What was said, as both conventions have it: JSON by OpenTelemetry's schema, and OpenInference's flat names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rlm_loop.formats.traces.calls import arguments_of, function_of, replied
from rlm_loop.messages import Message, Reply, ToolCall

#: What the schema of output messages calls the reasons; others are passed on.
_FINISH = {"tool_calls": "tool_call"}


def of_request(messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The attributes of a request's messages and tools."""
    found: dict[str, Any] = {"gen_ai.input.messages": text_of([_message(m) for m in messages])}
    for number, message in enumerate(messages):
        found.update(_flat(f"llm.input_messages.{number}", message.role, message.text, message.tool_calls))
        if message.tool_call_id is not None:
            found[f"llm.input_messages.{number}.message.tool_call_id"] = message.tool_call_id
    if tools:
        found["gen_ai.tool.definitions"] = text_of([{"type": "function", **function_of(tool)} for tool in tools])
        found |= {f"llm.tools.{n}.tool.json_schema": text_of(dict(tool)) for n, tool in enumerate(tools)}
    return found


def of_reply(reply: Reply) -> dict[str, Any]:
    """The attributes of a reply."""
    said = _message(replied(reply))
    thought = reply.extra.get("reasoning_content")
    if isinstance(thought, str) and thought:
        said["parts"].insert(0, {"type": "reasoning", "content": thought})
    said["finish_reason"] = _FINISH.get(reply.finish_reason, reply.finish_reason)
    flat = dict(_flat("llm.output_messages.0", "assistant", reply.text, reply.tool_calls))
    return {"gen_ai.output.messages": text_of([said])} | flat


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


def _flat(at: str, role: str, text: str, calls: Sequence[ToolCall]) -> Iterator[tuple[str, Any]]:
    yield f"{at}.message.role", role
    yield f"{at}.message.content", text
    for number, call in enumerate(calls):
        place = f"{at}.message.tool_calls.{number}.tool_call"
        if call.id is not None:
            yield f"{place}.id", call.id
        yield f"{place}.function.name", call.name
        yield f"{place}.function.arguments", call.arguments
