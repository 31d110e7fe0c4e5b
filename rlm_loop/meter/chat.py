"""The chat-completions API: a request body to `Request`, a response body to `Reply` and back, streams included."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, cast
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rlm_loop.messages import Message, Reply, Span, ToolCall, Usage
from rlm_loop.meter.request import Refused, Request, RequestMessage, content_of
from rlm_loop.models import wire
from rlm_loop.models.streams import joined as joined

_SAMPLING = (
    *("temperature", "top_p", "top_k", "min_p", "seed", "logit_bias"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty"),
)
#: Settings that a model of ours is not told.
_OTHERS = ("logprobs", "top_logprobs", "best_of", "parallel_tool_calls", "reasoning_effort", "verbosity")


class _Form(BaseModel):
    """Fields read of an object: numbers and texts are not taken for each other, other fields are passed over."""

    model_config = ConfigDict(strict=True)


class _Call(_Form):
    id: str | None = None
    function: dict[str, Any]


class _Message(_Form):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Any = None
    refusal: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None


class _Body(_Form):
    messages: list[_Message] = Field(min_length=1)
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    stop: str | list[str] | None = None
    response_format: dict[str, Any] | None = None
    max_completion_tokens: int | None = None
    max_tokens: int | None = None
    n: int | None = None
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    model: str | None = None


def read(body: Any) -> Request:
    """Read a request.  Raises `Refused` for what is no request of this API."""
    try:
        form = _Body.model_validate(body)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, wrong["loc"])) or "the request body"
        raise Refused(f"{place}: {wrong['msg']}; correct it") from None
    not_applied = {name: body[name] for name in _OTHERS if body.get(name) is not None}
    if form.tool_choice not in (None, "auto", "none"):
        not_applied["tool_choice"] = form.tool_choice
    if form.n not in (None, 1):
        not_applied["n"] = form.n
    limit = form.max_tokens if form.max_completion_tokens is None else form.max_completion_tokens
    return Request(
        tuple(map(_message, form.messages)),
        () if form.tool_choice == "none" else tuple(form.tools or ()),
        stop=(form.stop,) if isinstance(form.stop, str) else tuple(form.stop or ()),
        reply_schema=_schema(form.response_format or {}, not_applied),
        max_tokens=None if limit is None else max(limit, 1),
        stream=bool(form.stream),
        include_usage=bool((form.stream_options or {}).get("include_usage")),
        model=form.model or "",
        sampling={name: body[name] for name in _SAMPLING if body.get(name) is not None},
        not_applied=not_applied,
    )


def _message(said: _Message) -> RequestMessage:
    text, unread = content_of(said.content)
    calls = (
        ToolCall(call.id, str(call.function.get("name") or ""), wire.arguments_text(call.function.get("arguments")))
        for call in said.tool_calls or ()
    )
    thought, _ = content_of(said.reasoning_content or said.reasoning)
    role = "system" if said.role == "developer" else said.role
    return RequestMessage(role, text or content_of(said.refusal)[0], tuple(calls), said.tool_call_id, thought, unread)


def _schema(wanted: Mapping[str, Any], not_applied: dict[str, Any]) -> Mapping[str, Any] | None:
    """The JSON schema that a reply is to follow, from a `response_format`; one of another kind is not applied."""
    kind = wanted.get("type", "text")
    schema = {"type": "object"} if kind == "json_object" else (wanted.get("json_schema") or {}).get("schema")
    if isinstance(schema, dict):
        return cast("dict[str, Any]", schema)
    if kind != "text":
        not_applied["response_format"] = wanted
    return None


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


def write(reply: Reply, request: Request) -> dict[str, Any]:
    """Return the response body.  Every tool call of the reply has an id here (see `session`)."""
    calls = tuple(replace(call, arguments=call.arguments or "{}") for call in reply.tool_calls)
    message = Message("assistant", (Span(reply.text, "assistant"),), calls).to_dict()
    finish = "tool_calls" if calls else "stop" if reply.finish_reason == "error" else reply.finish_reason
    return {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": _usage(reply.usage),
    }


def stream(reply: Reply, request: Request) -> Iterator[str]:
    """The same as server-sent events.  The reply is whole before the first: it comes in one piece."""
    whole = write(reply, request)
    (choice,), usage = whole.pop("choices"), whole.pop("usage")
    message, finish = choice["message"], choice["finish_reason"]
    if calls := message.get("tool_calls"):
        message["tool_calls"] = [{"index": i, **call} for i, call in enumerate(calls)]
    head = {**whole, "object": "chat.completion.chunk"}
    for delta, ended in ((message, None), ({}, finish)):
        chunk = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": ended}
        yield f"data: {json.dumps({**head, 'choices': [chunk]})}\n\n"
    if request.include_usage:
        yield f"data: {json.dumps({**head, 'choices': [], 'usage': usage})}\n\n"
    yield "data: [DONE]\n\n"


def error(told: Refused) -> dict[str, Any]:
    """An error in OpenAI's form."""
    return {"error": {"message": told.message, "type": told.kind, "param": None, "code": told.code}}
