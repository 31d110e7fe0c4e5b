"""The Responses API of OpenAI: a request body to `Request`, a `Reply` to a response or to a stream of events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from rlm_loop.messages import Reply, Role, ToolCall, Usage
from rlm_loop.meter.chat import arguments_of, error
from rlm_loop.meter.chat import schema_of as chat_schema
from rlm_loop.meter.request import Reading, Refused, Request, RequestMessage, text_of

__all__ = ["error", "read", "stream", "write"]

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_SAMPLING = frozenset(
    (
        *("temperature", "top_p", "seed", "top_logprobs", "truncation"),
        *("parallel_tool_calls", "max_tool_calls", "reasoning", "verbosity"),
    )
)


#: Items that hold a call, and items that hold what came of one.
_CALLS = frozenset(("function_call", "custom_tool_call", "local_shell_call", "web_search_call"))
_RESULTS = frozenset(("function_call_output", "custom_tool_call_output", "local_shell_call_output"))


def read(body: Any) -> Request:
    """Read a request.  Raises `Refused` where it cannot be served."""
    form = Reading(body)
    for name in ("previous_response_id", "conversation"):
        if form.take(name) is not None:
            raise Refused(f"{name} is not kept here: send the whole input each time", param=name)
    instructions = form.take("instructions", str)
    given = form.take("input", (str, list))
    if not given:
        raise Refused("input is missing or empty; send a text or a list of items", param="input")
    ignored: dict[str, None] = {}
    said = [RequestMessage("system", instructions)] if instructions else []
    items: list[Any] = [{"role": "user", "content": given}] if isinstance(given, str) else given
    for index, item in enumerate(items):
        _add(said, item, f"input[{index}]", ignored)
    tools = tuple(_tools(form.take("tools", list)))
    text = Reading(form.take("text", dict) or {}, "text")
    wanted = text.take("format", dict)
    not_applied = form.settings(_SAMPLING)
    choice = form.take("tool_choice")
    if choice not in (None, "auto", "none"):
        not_applied["tool_choice"] = choice
    return Request(
        tuple(said),
        () if choice == "none" else tools,
        reply_schema=chat_schema(_as_chat(wanted)),
        max_tokens=form.limit("max_output_tokens"),
        stream=bool(form.take("stream", bool)),
        include_usage=True,
        model=str(form.take("model", str) or ""),
        ignored=(*form.ignored, *ignored, *(f"text.{name}" for name in text.ignored)),
        not_applied=not_applied,
    )


def _add(said: list[RequestMessage], item: Any, where: str, ignored: dict[str, None]) -> None:
    form = Reading(item, where)
    kind = form.take("type", str) or "message"
    if kind == "message":
        role = form.take("role", str)
        if role not in _ROLES:
            raise Refused(f"{where}.role is {role!r}; use {', '.join(_ROLES)}", param=f"{where}.role")
        said.append(RequestMessage(_ROLES[role], text_of(form.take("content"), f"{where}.content")))
    elif kind in _CALLS:
        given = next(
            (value for name in ("arguments", "input", "action") if (value := form.take(name)) is not None), None
        )
        call = ToolCall(form.take("call_id", str), form.take("name", str) or kind, arguments_of(given))
        if said and said[-1].role == "assistant":  # a chat model's message holds its text and its calls together
            said[-1] = RequestMessage("assistant", said[-1].text, (*said[-1].tool_calls, call))
        else:
            said.append(RequestMessage("assistant", "", (call,)))
    elif kind in _RESULTS:
        text = text_of(form.take("output"), f"{where}.output")
        said.append(RequestMessage("tool", text, tool_call_id=form.take("call_id", str)))
    elif kind == "reasoning":
        ignored["input[].reasoning"] = None
        return
    else:
        raise Refused(f"{where} is of type {kind!r}; send messages, function calls and their outputs", param=where)
    ignored.update((f"input[].{name}", None) for name in form.ignored if name not in ("id", "status"))


def _tools(listed: Any) -> Iterator[Mapping[str, Any]]:
    """Functions as function tools; custom, built-in and grouped ones as they were sent."""
    for index, tool in enumerate(cast("list[Any]", listed or [])):
        given = Reading(tool, f"tools[{index}]").body
        function = {k: v for k, v in given.items() if k != "type"}
        yield {"type": "function", "function": function} if given.get("type") == "function" else given


def _as_chat(wanted: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if wanted is None or wanted.get("type") != "json_schema":
        return wanted
    return {"type": "json_schema", "json_schema": wanted}


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
    custom = {tool.get("name") for tool in request.tools if tool.get("type") == "custom"}
    items: list[dict[str, Any]] = []
    if reply.text or not reply.tool_calls:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        items.append(
            {"type": "message", "id": f"msg_{name}", "status": "completed", "role": "assistant", "content": content}
        )
    for index, call in enumerate(reply.tool_calls):
        about = {"id": f"fc_{name}_{index}", "call_id": call.id, "name": call.name, "status": "completed"}
        if call.name in custom:
            items.append({"type": "custom_tool_call", **about, "input": _input(call.arguments)})
        else:
            items.append({"type": "function_call", **about, "arguments": call.arguments or "{}"})
    return items


def _input(arguments: str) -> str:
    """The text that a custom tool is given: the one field of a model's JSON arguments, or the arguments as they are."""
    try:
        value: Any = json.loads(arguments)
    except ValueError:
        return arguments
    texts = list(cast("dict[str, Any]", value).values()) if isinstance(value, dict) else []
    return texts[0] if len(texts) == 1 and isinstance(texts[0], str) else arguments


def write(reply: Reply, request: Request, name: str, created: int) -> dict[str, Any]:
    """The response body.  Every tool call of the reply has an id here (see `exchange`)."""
    cut = reply.cut_off
    tools = [{"type": "function", **tool["function"]} if "function" in tool else dict(tool) for tool in request.tools]
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
        "previous_response_id": None,
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
