"""The chat-completions API: a request body to `Request`, a response body to `Reply` and back, streams included."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from rlm_loop.messages import Reply, Role, ToolCall, Usage
from rlm_loop.meter.request import FieldReader, Refused, Request, RequestMessage, content_of
from rlm_loop.models import wire
from rlm_loop.models.streams import joined as joined

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_SAMPLING = (
    *("temperature", "top_p", "top_k", "min_p", "seed", "logit_bias"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty"),
)
#: Settings that a model of ours is not told.
_OTHERS = ("logprobs", "top_logprobs", "best_of", "parallel_tool_calls", "reasoning_effort", "verbosity")


def read(body: Any) -> Request:
    """Read a request.  Raises `Refused` for what is no request of this API."""
    form = FieldReader(body)
    several = form.take("n", int)
    listed = form.needed("messages", list, "at least one message")
    messages = tuple(_message(m, f"messages[{i}]") for i, m in enumerate(listed))
    tools = tuple(tools_of(form.take("tools", list)))
    options = FieldReader(form.take("stream_options", dict) or {}, "stream_options")
    not_applied = form.settings(*_OTHERS)
    choice = form.take("tool_choice")
    if choice not in (None, "auto", "none"):
        not_applied["tool_choice"] = choice
    if several not in (None, 1):
        form.refuse(f"n is {several}: one reply is given to a request; send it {several} times", param="n")
    return Request(
        messages,
        () if choice == "none" else tools,
        _stop(form.take("stop", (str, list))),
        _schema(form.take("response_format", dict), form),
        form.limit("max_completion_tokens", "max_tokens"),
        bool(form.take("stream", bool)),
        bool(options.take("include_usage", bool)),
        str(form.take("model", str) or ""),
        sampling=form.settings(*_SAMPLING),
        not_applied=not_applied,
        refusal=form.refusal,
    )


def _message(data: Any, where: str) -> RequestMessage:
    form = FieldReader(data, where)
    role = form.role(_ROLES)
    text, unread = content_of(form.take("content"), f"{where}.content")
    calls = [_call(c, f"{where}.tool_calls[{i}]") for i, c in enumerate(form.take("tool_calls", list) or ())]
    thought = form.take("reasoning_content") or form.take("reasoning")
    return RequestMessage(
        role,
        text or form.take("refusal", str) or "",
        tuple(calls),
        form.take("tool_call_id", str),
        thought if isinstance(thought, str) else "",
        unread,
    )


def _call(data: Any, where: str) -> ToolCall:
    form = FieldReader(data, where)
    name = form.take("id", str)
    function = form.take("function", dict)
    if function is None:
        raise Refused(f"{where} is no function call; send one with a function", param=where)
    return ToolCall(name, str(function.get("name") or ""), wire.arguments_text(function.get("arguments")))


def tools_of(listed: Any) -> Iterator[Mapping[str, Any]]:
    """Tools as they were sent: the model is told their very schemas."""
    for index, tool in enumerate(cast("list[Any]", listed or [])):
        if not isinstance(tool, dict) or not isinstance(cast("dict[str, Any]", tool).get("type", ""), str):
            raise Refused(f"tools[{index}] is no tool; send an object with a type", param="tools")
        yield cast("dict[str, Any]", tool)


def _stop(value: Any) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else list(value or ())
    if not all(isinstance(text, str) for text in given):
        raise Refused("stop holds something that is no text; send texts", param="stop")
    return tuple(given)


def _schema(wanted: Mapping[str, Any] | None, form: FieldReader) -> Mapping[str, Any] | None:
    """The JSON schema that a reply is to follow, from a `response_format`; without one `form` is refused."""
    kind = (wanted or {}).get("type", "text")
    if wanted is None or kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    schema = (wanted.get("json_schema") or {}).get("schema") if kind == "json_schema" else None
    if not isinstance(schema, dict):
        form.refuse(f"response_format of type {kind!r} has no schema; send json_schema.schema", param="response_format")
        return None
    return cast("dict[str, Any]", schema)


#: The reply in a body.  Raises `ModelError` for what is none.
heard = wire.to_reply


def _usage(usage: Usage | None) -> dict[str, Any] | None:
    """The `usage` object, cached and thought tokens among the others; `None` where the model did not say."""
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    said: dict[str, Any] = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    if usage.cache_read_tokens is not None:
        said["prompt_tokens_details"] = {"cached_tokens": usage.cache_read_tokens}
    if usage.reasoning_tokens is not None:
        said["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return said


def write(reply: Reply, request: Request, name: str, created: int) -> dict[str, Any]:
    """Return the response body.  Every tool call of the reply has an id here (see `session`)."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or (None if reply.tool_calls else "")}
    finish = "stop" if reply.finish_reason == "error" else reply.finish_reason
    if reply.tool_calls:
        named = ((call.id, {"name": call.name, "arguments": call.arguments or "{}"}) for call in reply.tool_calls)
        message["tool_calls"] = [{"id": name, "type": "function", "function": function} for name, function in named]
        finish = "tool_calls"
    more: Any = reply.extra.get("message")
    if isinstance(more, Mapping):  # what a reasoning model thought, or why it refused
        message |= {k: v for k, v in cast("Mapping[str, Any]", more).items() if k in ("reasoning_content", "refusal")}
    return {
        "id": f"chatcmpl-{name}",
        "object": "chat.completion",
        "created": created,
        "model": request.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": _usage(reply.usage),
    }


def stream(reply: Reply, request: Request, name: str, created: int) -> Iterator[str]:
    """The same as server-sent events.  The reply is whole before the first: it comes in one piece."""
    whole = write(reply, request, name, created)
    (choice,), usage = whole.pop("choices"), whole.pop("usage")
    message, finish = choice["message"], choice["finish_reason"]
    if calls := message.get("tool_calls"):
        message["tool_calls"] = [{"index": i, **call} for i, call in enumerate(calls)]
    head = {**whole, "object": "chat.completion.chunk", **({"usage": None} if request.include_usage else {})}
    for delta, ended in ((message, None), ({}, finish)):
        chunk = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": ended}
        yield f"data: {json.dumps({**head, 'choices': [chunk]})}\n\n"
    if request.include_usage:
        yield f"data: {json.dumps({**head, 'choices': [], 'usage': usage})}\n\n"
    yield "data: [DONE]\n\n"


def error(told: Refused) -> dict[str, Any]:
    """An error in OpenAI's form."""
    return {"error": {"message": told.message, "type": told.kind, "param": told.param, "code": told.code}}
