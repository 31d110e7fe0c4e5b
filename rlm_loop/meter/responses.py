"""Read the Responses API of OpenAI: a request body as `Request`, a response as `Reply`, streams included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from rlm_loop.messages import Reply, Role, ToolCall
from rlm_loop.meter.chat import error
from rlm_loop.meter.request import Refused, Request, RequestMessage, content_of, function_of, json_of
from rlm_loop.models.base import ModelError
from rlm_loop.models.wire import arguments_text, to_usage

__all__ = ["error", "heard", "joined", "read"]

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
#: Items that are calls of the model's; what came of them are items named `..._output`.
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call")


def read(body: Any) -> Request:
    """Read a request.  Raises `Refused`, or what Python raises for another shape, for what is none of this API."""
    given = body.get("input")
    elsewhere = any(body.get(name) for name in ("conversation", "prompt", "previous_response_id"))
    if not given and not elsewhere:
        raise Refused("input is missing or empty; send a text or a list of items")
    instructions, _ = content_of(body.get("instructions"))
    said = [RequestMessage("system", instructions)] if instructions else []
    if elsewhere:
        said.append(RequestMessage("user", unread=("previous_response",)))
    tools = list(_tools(body.get("tools")))
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given or ():
        if item.get("type") == "additional_tools":
            tools += _tools(item.get("tools"))
        else:
            _add(said, item)
    return Request(
        tuple(said),
        () if body.get("tool_choice") == "none" else tuple(tools),
        stream=bool(body.get("stream")),
        model=str(body.get("model") or ""),
    )


def _add(said: list[RequestMessage], item: dict[str, Any]) -> None:
    kind = str(item.get("type") or "message")
    if kind == "message":
        role = _ROLES[item["role"]]
        text, unread = content_of(item.get("content"))
        more = RequestMessage(role, text, unread=unread)
        if role == "assistant":
            _join(said, more)
        else:
            said.append(more)
    elif kind in _CALLS:
        given = next((item[name] for name in ("arguments", "input", "action") if item.get(name) is not None), None)
        identifier, name = item.get("call_id"), str(item.get("name") or kind)
        call = ToolCall(identifier if isinstance(identifier, str) else None, name, arguments_text(given))
        _join(said, RequestMessage("assistant", "", (call,)))
    elif kind == "reasoning":
        thought, _ = content_of([*(item.get("summary") or ()), *(item.get("content") or ())])
        sealed = ("thinking",) if item.get("encrypted_content") else ()
        said.append(RequestMessage("assistant", thought=thought, unread=sealed))
    elif kind == "item_reference":
        said.append(RequestMessage("assistant", unread=("previous_response",)))
    elif kind.endswith("_output"):
        text, unread = content_of(item.get("output", [item]))
        said.append(RequestMessage("tool", text, tool_call_id=str(item.get("call_id")), unread=unread))
    else:  # what a tool of the provider's was called with, or a compaction
        _join(said, RequestMessage("assistant", json_of(item)))


def _join(said: list[RequestMessage], more: RequestMessage) -> None:
    """A chat model's message holds its thought, its text and its calls together."""
    last = said[-1] if said else None
    if last is None or last.role != "assistant" or (more.text and (last.text or last.tool_calls)):
        said.append(more)
    else:
        calls, unread = (*last.tool_calls, *more.tool_calls), (*last.unread, *more.unread)
        said[-1] = replace(last, text=last.text or more.text, tool_calls=calls, unread=unread)


def _tools(listed: Any, space: str = "") -> Iterator[Mapping[str, Any]]:
    """Functions as function tools, those of a namespace under its name; others as they were sent."""
    for tool in listed or ():
        if tool.get("type") == "namespace" and isinstance(tool.get("tools"), list):
            yield from _tools(tool["tools"], str(tool.get("name")))
        elif tool.get("type") == "function":
            about = {"description": "", "parameters": None, **tool}
            del about["type"]
            name = f"{space}__{about.pop('name', None)}" if space else str(about.pop("name", None))
            yield {**function_of(name, **about), **({"namespace": space} if space else {})}
        else:
            yield tool


def heard(body: Mapping[str, Any]) -> Reply:
    """The reply in a body.  Raises `ModelError` for what is none."""
    if not isinstance(body.get("output"), list):
        raise ModelError(f"no response: {str(body)[:120]!r}")
    said: list[RequestMessage] = []
    for item in body["output"]:
        _add(said, {"role": "assistant", **item})
    text, calls = "\n".join(m.text for m in said if m.text), tuple(call for m in said for call in m.tool_calls)
    finish = "length" if body.get("status") == "incomplete" else "tool_calls" if calls else "stop"
    extra = {k: v for k, v in body.items() if k in ("id", "model", "usage", "service_tier")}
    return Reply(text, calls, finish, to_usage(body.get("usage")), extra=extra)


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
