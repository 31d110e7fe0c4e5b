"""The Messages API of Anthropic: a request body to `Request`, a message to `Reply` and back, streams included."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from rlm_loop.messages import Reply, Role, ToolCall, Usage
from rlm_loop.meter.chat import tools_of
from rlm_loop.meter.failures import ErrorReply
from rlm_loop.meter.request import FieldReader, Request, RequestMessage, arguments_of, content_of, function_of
from rlm_loop.models.base import ModelError
from rlm_loop.models.wire import arguments_object, to_usage, whole

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_STOPS = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
_FINISH = {"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "content_filter"}
_KINDS = {"insufficient_quota": "rate_limit_error", "server_error": "api_error"}


def read(body: Any) -> Request:
    """Read a request.  Raises `Refused` for what is no request of this API."""
    form = FieldReader(body)
    listed = form.needed("messages", list, "at least one message")
    ignored: dict[str, None] = {}
    system, unread = content_of(form.take("system", (str, list)), "system")
    said = [RequestMessage("system", system, unread=unread)] if system else []
    for index, message in enumerate(listed):
        said += _message(message, f"messages[{index}]", ignored)
    tools = tuple(map(_tool, tools_of(form.take("tools", list))))
    not_applied = form.settings("thinking")
    config = FieldReader(form.take("output_config", dict) or {}, "output_config")
    schema = (config.take("format", dict) or form.take("output_format", dict) or {}).get("schema")
    if config.ignored:
        not_applied["output_config"] = {name: config.body[name] for name in config.ignored}
    choice: Mapping[str, Any] = form.take("tool_choice", dict) or {"type": "auto"}
    if choice.get("type") not in ("auto", "none"):
        not_applied["tool_choice"] = dict(choice)
    return Request(
        tuple(said),
        () if choice.get("type") == "none" else tools,
        tuple(str(text) for text in form.take("stop_sequences", list) or ()),
        reply_schema=schema if isinstance(schema, dict) else None,
        max_tokens=form.limit("max_tokens"),
        stream=bool(form.take("stream", bool)),
        include_usage=True,
        model=str(form.take("model", str) or ""),
        sampling=form.settings("temperature", "top_p", "top_k"),
        ignored=(*form.ignored, *ignored),
        not_applied=not_applied,
        refusal=form.refusal,
    )


def _message(data: Any, where: str, ignored: dict[str, None]) -> Iterator[RequestMessage]:
    """One message; results of tools, which come in a user's message here, are messages of their own."""
    form = FieldReader(data, where)
    role, content = form.role(_ROLES), form.take("content", (str, list))
    rest: list[Any] = []
    thoughts: list[str] = []
    calls: list[ToolCall] = []
    blocks: list[Any] = [content] if isinstance(content, str) else content or []
    for index, block in enumerate(blocks):
        kind: Any = cast("dict[str, Any]", block).get("type") if isinstance(block, dict) else "text"
        if kind == "tool_result":
            text, unread = content_of(block.get("content"), f"{where}.content[{index}]")
            yield RequestMessage("tool", text, tool_call_id=str(block.get("tool_use_id") or ""), unread=unread)
        elif kind == "tool_use":
            name, given = str(block.get("name") or ""), arguments_of(block.get("input") or {})
            calls.append(ToolCall(str(block.get("id") or ""), name, given))
        elif kind == "thinking" and block.get("thinking"):
            thoughts.append(str(block["thinking"]))
        else:
            rest.append(block)
    text, unread = content_of(rest, f"{where}.content")
    if text or calls or thoughts or unread or not content:
        yield RequestMessage(role, text, tuple(calls), None, "\n".join(thoughts), unread)
    ignored.update((f"messages[].{name}", None) for name in form.ignored)


def _tool(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """A tool with a schema as the chat API has it; others, which the provider defines or runs, as they are."""
    if not isinstance(tool.get("input_schema"), dict):
        return {k: v for k, v in tool.items() if k != "cache_control"}
    return function_of(tool.get("name"), tool.get("description"), tool["input_schema"])


def heard(body: Mapping[str, Any]) -> Reply:
    """The reply in a body.  Raises `ModelError` for what is none."""
    if not isinstance(body.get("content"), list) or "usage" not in body:
        raise ModelError(f"no message: {str(body)[:120]!r}")
    content = {"role": "assistant", "content": body["content"]}
    said = [RequestMessage("assistant"), *_message(content, "the message", {})][-1]
    finish: Any = _FINISH.get(str(body.get("stop_reason")), "tool_calls" if said.tool_calls else "stop")
    extra = {k: v for k, v in body.items() if k in ("id", "model", "usage")}
    return Reply(said.text, said.tool_calls, finish, to_usage(usage_as_chat(body["usage"])), extra=extra)


def _usage(usage: Usage | None) -> dict[str, Any]:
    """What was read from a cache and written to one is not among `input_tokens` here; what is not known is 0, since
    both have to be numbers."""
    if usage is None or usage.input_tokens is None:
        return {"input_tokens": 0, "output_tokens": 0}
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    new = usage.input_tokens - (read or 0) - (written or 0)
    said = {"input_tokens": new, "output_tokens": usage.output_tokens or 0}
    if read is None and written is None:
        return said
    return {**said, "cache_read_input_tokens": read or 0, "cache_creation_input_tokens": written or 0}


def write(reply: Reply, request: Request, name: str, created: int) -> dict[str, Any]:
    """The response body.  Every tool call of the reply has an id here (see `exchange`)."""
    content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
    for call in reply.tool_calls:
        given = arguments_object(call.arguments, "invalid_json")
        content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": given})
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


def joined(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The body that the events of a stream make together.  Later figures of the usage are the whole's."""
    message: dict[str, Any] = {}
    blocks: dict[Any, dict[str, Any]] = {}
    for event in events:
        match event.get("type"):
            case "message_start":
                message = dict(event.get("message") or {})
            case "content_block_start":
                blocks[event.get("index")] = dict(event.get("content_block") or {})
            case "content_block_delta":
                block, delta = blocks.setdefault(event.get("index"), {}), event.get("delta") or {}
                for name in ("text", "thinking", "signature", "partial_json"):
                    if isinstance(delta.get(name), str):
                        block[name] = block.get(name, "") + delta[name]
            case "message_delta":
                message |= event.get("delta") or {}
                new = {k: v for k, v in (event.get("usage") or {}).items() if v is not None}
                message["usage"] = {**(message.get("usage") or {}), **new}
            case "error":
                message["error"] = event.get("error")
            case _:
                pass
    for block in blocks.values():
        if text := block.pop("partial_json", ""):
            block["input"] = arguments_object(text)
    return {**message, "content": list(blocks.values())}


def usage_as_chat(stated: Any) -> Any:
    """A usage in the shape of the chat API.

    Here `input_tokens` leave out what was read from a cache and what was written to it; what was written for 5 minutes
    and for an hour is inside `cache_creation_input_tokens`.  What a compaction on the server took is billed and stands
    in `iterations` alone (`BetaUsage.iterations` of the anthropic package).
    """
    if not isinstance(stated, Mapping):
        return None
    usage = cast("Mapping[str, Any]", stated)
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    beside = [
        one for one in usage.get("iterations") or () if isinstance(one, Mapping) and one.get("type") == "compaction"
    ]
    new, read, written, out = (_total(name, usage, beside) for name in names)
    details: Any = usage.get("output_tokens_details")
    thought = cast("Mapping[str, Any]", details).get("thinking_tokens") if isinstance(details, Mapping) else None
    return {
        "prompt_tokens": None if new is None else new + (read or 0) + (written or 0),
        "completion_tokens": out,
        "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
        "completion_tokens_details": {"reasoning_tokens": thought},
    }


def _total(name: str, usage: Mapping[str, Any], beside: Sequence[Mapping[str, Any]]) -> int | None:
    stated = whole(usage.get(name))
    more = [tokens for one in beside if (tokens := whole(one.get(name))) is not None]
    return stated if not more else (stated or 0) + sum(more)
