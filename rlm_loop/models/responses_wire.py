"""OpenAI's Responses: from a prompt to a request, and from an answer to the shape of the chat API.

After the API reference ("Create a model response") and the guide on reasoning ("encrypted reasoning items").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from rlm_loop.messages import Message, Prompt, ToolCall
from rlm_loop.models.listening import Kind
from rlm_loop.models.streams import Form

Item = dict[str, Any]


def to_request(prompt: Prompt) -> dict[str, Any]:
    """The parts of a request that come from the prompt; system texts are items as well, so that the order is kept."""
    found: dict[str, Any] = {"input": [item for message in prompt.messages for item in _items(message)]}
    if prompt.tools:
        found["tools"] = [_tool(tool) for tool in prompt.tools]
    if prompt.reply_schema is not None:
        wanted = {"type": "json_schema", "name": "reply", "strict": True, "schema": dict(prompt.reply_schema)}
        found["text"] = {"format": wanted}
    return found


def as_chat(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer in the shape of the chat API.  Its items are under `kept` where it has reasoning among them."""
    output = cast("list[Any]", answer["output"])
    items = [cast("Item", i) for i in output if isinstance(i, dict)]
    text, calls = _said(items)
    refusal = "".join(str(part.get("refusal") or "") for part in _parts(items))
    message: dict[str, Any] = {
        "content": text,
        "tool_calls": [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in calls
        ],
    }
    message |= {"refusal": refusal} if refusal else {}
    thought = {"kept": {"responses": items}} if any(i.get("type") == "reasoning" for i in items) else {}
    return {
        **{k: answer[k] for k in ("id", "model", "created_at", "service_tier") if answer.get(k) is not None},
        **thought,
        "choices": [{"message": message, "finish_reason": _finish(answer, bool(calls), bool(refusal and not text))}],
        "usage": answer.get("usage"),
    }


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


def _pieces(event: Mapping[str, Any]) -> Iterator[tuple[Kind, Any]]:
    item = event.get("item") or {}
    match event.get("type"):
        case "response.output_item.added" if item.get("type") == "function_call":
            yield "call", f"\n{item.get('name')} "
        case "response.function_call_arguments.delta":
            yield "call", event.get("delta")
        case "response.output_text.delta":
            yield "text", event.get("delta")
        case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
            yield "thinking", event.get("delta")
        case _:
            pass


_LAST = ("response.completed", "response.incomplete", "response.failed")
EVENTS = Form(_pieces, joined, lambda event: event.get("type") in _LAST)
"""How this API streams."""


def _finish(answer: Mapping[str, Any], called: bool, refused: bool) -> str:
    if answer.get("status") == "incomplete":
        details: Any = answer.get("incomplete_details")
        reason = cast("Mapping[str, Any]", details).get("reason") if isinstance(details, Mapping) else None
        return "content_filter" if reason == "content_filter" else "length"
    return "content_filter" if refused else "tool_calls" if called else "stop"


def _said(items: Sequence[Item]) -> tuple[str, tuple[ToolCall, ...]]:
    """The text and the calls of an answer."""
    text = "".join(str(part.get("text") or "") for part in _parts(items))
    calls = [i for i in items if i.get("type") == "function_call"]
    return text, tuple(
        ToolCall(str(i.get("call_id") or ""), str(i.get("name") or ""), str(i.get("arguments") or "")) for i in calls
    )


def _parts(items: Sequence[Item]) -> list[Item]:
    contents = [i.get("content") for i in items if i.get("type") == "message"]
    lists = [cast("list[Any]", c) for c in contents if isinstance(c, list)]
    return [cast("Item", part) for parts in lists for part in parts if isinstance(part, dict)]


def _items(message: Message) -> list[Item]:
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": message.tool_call_id or "", "output": message.text}]
    if message.role != "assistant":
        return [{"type": "message", "role": message.role, "content": message.text}]
    own: list[Item] = [{"type": "message", "role": "assistant", "content": message.text}] if message.text else []
    own += [
        {"type": "function_call", "call_id": c.id or "", "name": c.name, "arguments": c.arguments or "{}"}
        for c in message.tool_calls
    ]
    stated: Any = (message.kept or {}).get("responses")
    if not isinstance(stated, list) or not own:  # reasoning has to be followed by what it led to
        return own
    kept = [cast("Item", i) for i in cast("list[Any]", stated) if isinstance(i, dict)]
    if _said(kept) == (message.text, message.tool_calls):  # in its own order, by its own ids
        return [_stated(item) for item in kept]
    return own  # reasoning belongs to items that the loop has changed, and is refused without them


def _stated(value: Any) -> Any:
    """An item as it came, without the fields that say `null`: in a request some of them are refused."""
    if isinstance(value, list):
        return [_stated(each) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    return {k: _stated(v) for k, v in cast("dict[str, Any]", value).items() if v is not None}


def _tool(tool: Mapping[str, Any]) -> Item:
    function = cast("Mapping[str, Any]", tool["function"])
    parameters: Any = function.get("parameters") or {"type": "object", "properties": {}}
    about = {"description": function["description"]} if function.get("description") else {}
    return {"type": "function", "name": function["name"], **about, "parameters": parameters, "strict": False}
