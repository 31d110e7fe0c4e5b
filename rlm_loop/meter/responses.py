"""The Responses API of OpenAI: a request body to `Request`, a response to `Reply` and back, streams included."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from rlm_loop.messages import Reply, Role, ToolCall, Usage
from rlm_loop.meter.chat import error, tools_of
from rlm_loop.meter.chat import schema_of as chat_schema
from rlm_loop.meter.request import (
    FieldReader,
    Refused,
    Request,
    RequestMessage,
    arguments_of,
    content_of,
    custom_input,
    function_of,
    json_of,
)
from rlm_loop.models import wire
from rlm_loop.models.base import ModelError

__all__ = ["error", "heard", "joined", "read", "stream", "write"]

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
#: Items that are calls of the model's and what came of them, as what they are named in a chat.
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call")
_RESULTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")


def read(body: Any) -> Request:
    """Read a request.  Raises `Refused` for what is no request of this API."""
    form = FieldReader(body)
    instructions = form.take("instructions", str)
    previous, conversation = form.take("previous_response_id", str), form.take("conversation")
    given = form.take("input", (str, list))
    elsewhere = {"conversation": conversation, "prompt": form.take("prompt", dict)}
    if not given and not previous and not any(elsewhere.values()):
        raise Refused("input is missing or empty; send a text or a list of items", param="input")
    ignored: dict[str, None] = {}
    said = [RequestMessage("system", instructions)] if instructions else []
    for name in (name for name, there in elsewhere.items() if there):
        form.refuse(f"{name} is not kept here: send the whole input", param=name)
        said.append(RequestMessage("user", unread=("previous_response",)))
    items: list[Any] = [{"role": "user", "content": given}] if isinstance(given, str) else given or []
    tools = list(_tools(form.take("tools", list)))
    for index, item in enumerate(items):
        if isinstance(item, dict) and cast("dict[str, Any]", item).get("type") == "additional_tools":
            tools += _tools(FieldReader(item).take("tools", list))
        else:
            _add(said, item, f"input[{index}]", ignored)
    text = FieldReader(form.take("text", dict) or {}, "text")
    wanted = text.take("format", dict)
    not_applied = form.settings(
        *("top_logprobs", "truncation", "parallel_tool_calls", "max_tool_calls", "reasoning", "verbosity")
    )
    choice = form.take("tool_choice")
    if choice not in (None, "auto", "none"):
        not_applied["tool_choice"] = choice
    return Request(
        tuple(said),
        () if choice == "none" else tuple(tools),
        reply_schema=chat_schema(_as_chat(wanted), form),
        max_tokens=form.limit("max_output_tokens"),
        stream=bool(form.take("stream", bool)),
        include_usage=True,
        model=str(form.take("model", str) or ""),
        sampling=form.settings("temperature", "top_p", "seed"),
        ignored=(*form.ignored, *ignored, *(f"text.{name}" for name in text.ignored)),
        not_applied=not_applied,
        previous=previous,
        instructed=bool(instructions),
        refusal=form.refusal,
    )


def _add(said: list[RequestMessage], item: Any, where: str, ignored: dict[str, None]) -> None:
    form = FieldReader(item, where)
    kind = form.take("type", str) or "message"
    if kind == "message":
        role = form.role(_ROLES)
        text, unread = content_of(form.take("content"), f"{where}.content")
        more = RequestMessage(role, text, unread=unread)
        last = said[-1] if said and role == "assistant" else None
        if last is not None and last.role == "assistant" and not last.text and not last.tool_calls:
            _join(said, more)  # what it thought came first
        else:
            said.append(more)
    elif kind in _CALLS:
        for name in ("call_id", "name", "arguments", "input", "action"):
            form.take(name)
        _join(said, RequestMessage("assistant", "", (_called(form.body),)))
    elif kind in _RESULTS:
        text, unread = content_of(form.take("output"), f"{where}.output")
        said.append(RequestMessage("tool", text, tool_call_id=form.take("call_id", str), unread=unread))
    elif kind == "reasoning":
        parts = [*(form.take("summary", list) or ()), *(form.take("content", list) or ())]
        sealed = ("thinking",) if form.take("encrypted_content") else ()
        said.append(RequestMessage("assistant", thought=content_of(parts, where)[0], unread=sealed))
        return
    elif kind == "item_reference":
        said.append(RequestMessage("assistant", unread=("previous_response",), reference=form.take("id", str)))
    elif kind.endswith("_output"):
        text, unread = content_of([item] if "output" not in item else form.take("output"), f"{where}.output")
        said.append(RequestMessage("tool", text, tool_call_id=form.take("call_id", str), unread=unread))
        return
    else:  # what a tool of the provider's was called with, or a compaction
        _join(said, RequestMessage("assistant", json_of(form.body)))
        return
    ignored.update((f"input[].{name}", None) for name in form.ignored if name not in ("id", "status", "phase"))


def _called(item: Mapping[str, Any]) -> ToolCall:
    given = next((item[name] for name in ("arguments", "input", "action") if item.get(name) is not None), None)
    identifier = item.get("call_id")
    return ToolCall(
        identifier if isinstance(identifier, str) else None,
        str(item.get("name") or item.get("type")),
        arguments_of(given),
    )


def _join(said: list[RequestMessage], more: RequestMessage) -> None:
    """A chat model's message holds its thought, its text and its calls together."""
    last = said[-1] if said else None
    if last is None or last.role != "assistant" or (more.text and last.tool_calls):
        said.append(more)
    else:
        text = "\n".join(filter(None, (last.text, more.text)))
        said[-1] = replace(last, text=text, tool_calls=(*last.tool_calls, *more.tool_calls))


def _tools(listed: Any, space: str = "") -> Iterator[Mapping[str, Any]]:
    """Functions as function tools, those of a namespace under its name; others as they were sent."""
    for tool in tools_of(listed):
        if tool.get("type") == "namespace" and isinstance(tool.get("tools"), list):
            yield from _tools(tool["tools"], str(tool.get("name")))
        elif tool.get("type") == "function":
            about = {"description": "", "parameters": None, **tool}
            del about["type"]
            name = f"{space}__{about.pop('name', None)}" if space else str(about.pop("name", None))
            yield {**function_of(name, **about), **({"namespace": space} if space else {})}
        else:
            yield tool


def _as_chat(wanted: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if wanted is None or wanted.get("type") != "json_schema":
        return wanted
    return {"type": "json_schema", "json_schema": wanted}


def heard(body: Mapping[str, Any]) -> Reply:
    """The reply in a body.  Raises `ModelError` for what is none."""
    if not isinstance(body.get("output"), list):
        raise ModelError(f"no response: {str(body)[:120]!r}")
    said: list[RequestMessage] = []
    for item in body["output"]:
        _add(said, {"role": "assistant", **FieldReader(item, "an item of the output").body}, "output", {})
    text, calls = "\n".join(m.text for m in said if m.text), tuple(call for m in said for call in m.tool_calls)
    finish = "length" if body.get("status") == "incomplete" else "tool_calls" if calls else "stop"
    extra = {k: v for k, v in body.items() if k in ("id", "model", "usage", "service_tier")}
    extra["items"] = [item["id"] for item in body["output"] if isinstance(item.get("id"), str)]
    return Reply(text, calls, finish, wire.to_usage(body.get("usage")), extra=extra)


def _usage(usage: Usage | None) -> dict[str, Any] | None:
    """All tokens, with those read from a cache and those that were thought among them; both have to be numbers here."""
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cache_read_tokens or 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _items(reply: Reply, request: Request, name: str) -> list[dict[str, Any]]:
    spaces = {tool["function"]["name"]: tool["namespace"] for tool in request.tools if "namespace" in tool}
    items: list[dict[str, Any]] = []
    if reply.text or not reply.tool_calls:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        items.append(
            {"type": "message", "id": f"msg_{name}", "status": "completed", "role": "assistant", "content": content}
        )
    for index, call in enumerate(reply.tool_calls):
        about = {"id": f"fc_{name}_{index}", "call_id": call.id, "name": call.name, "status": "completed"}
        if space := spaces.get(call.name):
            about |= {"name": call.name.removeprefix(f"{space}__"), "namespace": space}
        if (text := custom_input(call, request)) is not None:
            items.append({"type": "custom_tool_call", **about, "id": f"ctc_{name}_{index}", "input": text})
        else:
            items.append({"type": "function_call", **about, "arguments": call.arguments or "{}"})
    return items


def write(reply: Reply, request: Request, name: str, created: int) -> dict[str, Any]:
    """The response body.  Every tool call of the reply has an id here (see `exchange`)."""
    cut = reply.cut_off
    tools = [{"type": "function", **tool["function"]} if "function" in tool else tool for tool in request.tools]
    return {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": created,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "instructions": None,
        "metadata": {},
        "model": request.model,
        "output": _items(reply, request, name),
        "parallel_tool_calls": True,
        "previous_response_id": request.previous,
        "temperature": None,
        "top_p": None,
        "tool_choice": "auto",
        "tools": tools,
        "text": {"format": {"type": "text"}},
        "usage": _usage(reply.usage),
    }


def stream(reply: Reply, request: Request, name: str, created: int) -> Iterator[str]:
    """The same as server-sent events.  The reply is whole before the first."""
    whole = write(reply, request, name, created)
    begun = {**whole, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    for number, event in enumerate(_events(whole, begun)):
        yield f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n"


def _events(whole: Mapping[str, Any], begun: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(whole["output"]):
        at = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            yield _added(index, {**item, "status": "in_progress", "content": []})
            part = item["content"][0]
            at |= {"content_index": 0}
            yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
            yield {"type": "response.output_text.delta", **at, "delta": part["text"], "logprobs": []}
            yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
            yield {"type": "response.content_part.done", **at, "part": part}
        elif item["type"] == "custom_tool_call":
            yield _added(index, {**item, "status": "in_progress", "input": ""})
            yield {"type": "response.custom_tool_call_input.delta", **at, "delta": item["input"]}
            yield {"type": "response.custom_tool_call_input.done", **at, "input": item["input"]}
        else:
            yield _added(index, {**item, "status": "in_progress", "arguments": ""})
            yield {"type": "response.function_call_arguments.delta", **at, "delta": item["arguments"]}
            done = {"arguments": item["arguments"], "name": item["name"]}
            yield {"type": "response.function_call_arguments.done", **at, **done}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{whole['status']}", "response": whole}


def _added(index: int, item: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def joined(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The body that the events of a stream make together: the last one has it whole, if the stream came to its end."""
    whole: dict[str, Any] = {}
    items: list[Any] = []
    for event in events:
        if isinstance(response := event.get("response"), Mapping):
            whole |= cast("Mapping[str, Any]", response)
        elif event.get("type") == "response.output_item.done":
            items.append(event.get("item"))
        elif event.get("type") == "error":
            whole.setdefault("error", event)
    return {**whole, "output": whole.get("output") or items}
