"""Read the Messages API of Anthropic: a request body as `Request`, a message as `Reply`, streams included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from rlm_loop.messages import Reply, Role, ToolCall, Usage
from rlm_loop.meter.request import Refused, Request, RequestMessage, content_of, function_of
from rlm_loop.models.base import ModelError
from rlm_loop.models.wire import arguments_object, arguments_text, whole

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_FINISH = {"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "content_filter"}
_KINDS = {"insufficient_quota": "rate_limit_error", "server_error": "api_error"}


def read(body: Any) -> Request:
    """Read a request.  Raises `Refused`, or what Python raises for another shape, for what is none of this API."""
    system, unread = content_of(body.get("system"))
    said = [RequestMessage("system", system, unread=unread)] if system else []
    for message in body["messages"]:
        said += _message(message)
    off = (body.get("tool_choice") or {}).get("type") == "none"
    return Request(
        tuple(said),
        () if off else tuple(map(_tool, body.get("tools") or ())),
        stream=bool(body.get("stream")),
        model=str(body.get("model") or ""),
    )


def _message(message: Mapping[str, Any]) -> Iterator[RequestMessage]:
    """Read a message; results of tools, which come in a user's message here, are messages of their own."""
    content: Any = message.get("content")
    blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    rest, thoughts, calls = list[Any](), list[str](), list[ToolCall]()
    for block in blocks:
        kind = block.get("type")
        if kind == "tool_result":
            text, unread = content_of(block.get("content"))
            yield RequestMessage("tool", text, tool_call_id=str(block.get("tool_use_id") or ""), unread=unread)
        elif kind == "tool_use":
            name, given = str(block.get("name") or ""), arguments_text(block.get("input") or {})
            calls.append(ToolCall(str(block.get("id") or ""), name, given))
        elif kind == "thinking" and block.get("thinking"):
            thoughts.append(str(block["thinking"]))
        else:
            rest.append(block)
    text, unread = content_of(rest)
    if text or calls or thoughts or unread or not content:
        yield RequestMessage(_ROLES[message["role"]], text, tuple(calls), None, "\n".join(thoughts), unread)


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
    said = [RequestMessage("assistant"), *_message(content)][-1]
    finish: Any = _FINISH.get(str(body.get("stop_reason")), "tool_calls" if said.tool_calls else "stop")
    extra = {k: v for k, v in body.items() if k in ("id", "model", "usage")}
    return Reply(said.text, said.tool_calls, finish, _usage(body["usage"]), extra=extra)


def error(told: Refused) -> dict[str, Any]:
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


def _usage(stated: Any) -> Usage:
    """Read a usage.

    Here `input_tokens` leave out what was read from a cache and what was written to it; what was written for 5 minutes
    and for an hour is inside `cache_creation_input_tokens`.  What a compaction on the server took is billed and stands
    in `iterations` alone (`BetaUsage.iterations` of the anthropic package).
    """
    if not isinstance(stated, Mapping):
        return Usage()
    usage = cast("Mapping[str, Any]", stated)
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    parts: Any = usage.get("iterations") or ()
    beside = [part for part in parts if isinstance(part, Mapping) and part.get("type") == "compaction"]
    new, read, written, out = (_total(name, usage, beside) for name in names)
    details: Any = usage.get("output_tokens_details")
    thought = whole(details.get("thinking_tokens")) if isinstance(details, Mapping) else None
    prompt = None if new is None else new + (read or 0) + (written or 0)
    return Usage(prompt, out, read, cache_write_tokens=written, reasoning_tokens=thought)


def _total(name: str, usage: Mapping[str, Any], beside: Sequence[Mapping[str, Any]]) -> int | None:
    stated = whole(usage.get(name))
    more = [tokens for one in beside if (tokens := whole(one.get(name))) is not None]
    return stated if not more else (stated or 0) + sum(more)
