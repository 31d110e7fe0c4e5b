"""The Messages API of Anthropic: a request body to `Request`, a `Reply` to a message or to a stream of events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from rlm_loop.messages import Reply, ToolCall, Usage
from rlm_loop.meter.failures import ErrorReply
from rlm_loop.meter.request import Reading, Refused, Request, RequestMessage, text_of

_SAMPLING = frozenset(("temperature", "top_p", "top_k", "thinking", "output_config"))
_STOPS = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
_KINDS = {
    "insufficient_quota": "rate_limit_error",
    "server_error": "api_error",
}


def read(body: Any) -> Request:
    """Read a request.  Raises `Refused` where it cannot be served."""
    form = Reading(body)
    listed = form.take("messages", list)
    if not listed:
        raise Refused("messages is missing or empty; send at least one message", param="messages")
    ignored: dict[str, None] = {}
    system = text_of(_plain(form.take("system", (str, list)), "system", ignored), "system")
    said = [RequestMessage("system", system)] if system else []
    for index, message in enumerate(listed):
        said += _message(message, f"messages[{index}]", ignored)
    tools = tuple(_tools(form.take("tools", list), ignored))
    not_applied = form.settings(_SAMPLING)
    choice: Mapping[str, Any] = form.take("tool_choice", dict) or {"type": "auto"}
    if choice.get("type") not in ("auto", "none"):
        not_applied["tool_choice"] = dict(choice)
    return Request(
        tuple(said),
        () if choice.get("type") == "none" else tools,
        tuple(str(text) for text in form.take("stop_sequences", list) or ()),
        max_tokens=form.limit("max_tokens"),
        stream=bool(form.take("stream", bool)),
        include_usage=True,
        model=str(form.take("model", str) or ""),
        ignored=(*form.ignored, *ignored),
        not_applied=not_applied,
    )


def _message(data: Any, where: str, ignored: dict[str, None]) -> Iterator[RequestMessage]:
    """One message; results of tools, which come in a user's message here, are messages of their own."""
    form = Reading(data, where)
    role, content = form.take("role", str), form.take("content", (str, list))
    if role not in ("user", "assistant", "system"):
        raise Refused(f"{where}.role is {role!r}; use user, assistant or system", param=f"{where}.role")
    texts: list[Any] = []
    calls: list[ToolCall] = []
    blocks: list[Any] = [content] if isinstance(content, str) else content or []
    for index, block in enumerate(blocks):
        kind: Any = cast("dict[str, Any]", block).get("type") if isinstance(block, dict) else "text"
        if kind == "tool_result":
            at = f"{where}.content[{index}]"
            text = text_of(_plain(block.get("content"), at, ignored), at)
            yield RequestMessage("tool", text, tool_call_id=str(block.get("tool_use_id") or ""))
        elif kind == "tool_use":
            arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
            calls.append(ToolCall(str(block.get("id") or ""), str(block.get("name") or ""), arguments))
        elif kind in ("thinking", "redacted_thinking"):
            ignored[f"messages[].{kind}"] = None
        else:
            texts.append(block)
    text = text_of(_plain(texts, f"{where}.content", ignored), f"{where}.content")
    if text or calls or not content:
        yield RequestMessage(role, text, tuple(calls))
    ignored.update((f"messages[].{name}", None) for name in form.ignored)


def _plain(content: Any, where: str, ignored: dict[str, None]) -> Any:
    """Content blocks, with note taken of the marks for a cache, which nothing here has use for."""
    for block in cast("list[Any]", content) if isinstance(content, list) else ():
        if isinstance(block, dict) and "cache_control" in block:
            ignored[f"{where.partition('[')[0]}[].cache_control"] = None
    return content


def _tools(listed: Any, ignored: dict[str, None]) -> Iterator[Mapping[str, Any]]:
    for index, tool in enumerate(cast("list[Any]", listed or [])):
        form = Reading(tool, f"tools[{index}]")
        if not isinstance(form.body.get("input_schema"), dict):  # one that the provider runs, or whose schema it knows
            yield form.body
            continue
        function = {"name": form.take("name", str), "description": form.take("description", str) or ""}
        yield {"type": "function", "function": {**function, "parameters": form.take("input_schema")}}
        ignored.update((f"tools[].{name}", None) for name in form.ignored if name != "type")


def _usage(usage: Usage | None) -> dict[str, Any]:
    """What was read from a cache and written to one is not among `input_tokens` here."""
    if usage is None or usage.input_tokens is None:
        return {"input_tokens": None, "output_tokens": None}
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    new = usage.input_tokens - (read or 0) - (written or 0)
    said = {"input_tokens": new, "output_tokens": usage.output_tokens}
    if read is None and written is None:
        return said
    return {**said, "cache_read_input_tokens": read or 0, "cache_creation_input_tokens": written or 0}


def _input(arguments: str) -> Any:
    """Arguments as an object: this API has no place for text that is none, so that goes under a name of its own."""
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        value = None
    return cast("Any", value) if isinstance(value, dict) else {"invalid_json": arguments}


def write(reply: Reply, request: Request, name: str, created: int) -> dict[str, Any]:
    """The response body.  Every tool call of the reply has an id here (see `exchange`)."""
    content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
    content += [
        {"type": "tool_use", "id": c.id, "name": c.name, "input": _input(c.arguments)} for c in reply.tool_calls
    ]
    stop = "tool_use" if reply.tool_calls else _STOPS.get(reply.finish_reason, "end_turn")
    return {
        "id": f"msg_{name}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": _usage(reply.usage),
    }


def stream(reply: Reply, request: Request, name: str, created: int) -> Iterator[str]:
    """The same as server-sent events.  The reply is whole before the first."""
    for event in _events(write(reply, request, name, created)):
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


def _events(whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            begun, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            begun = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"], ensure_ascii=False)}
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": whole["usage"]}
    yield {"type": "message_stop"}


def error(told: ErrorReply) -> dict[str, Any]:
    """An error in this API's form."""
    return {"type": "error", "error": {"type": _KINDS.get(told.kind, told.kind), "message": told.message}}
