"""Anthropic's Messages: from a prompt to a request, and from an answer to the shape of the chat API.

After the API reference ("Create a Message"), and the guides on prompt caching and on extended thinking.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from rlm_loop.messages import Message, Prompt, ToolCall
from rlm_loop.models.listening import Kind
from rlm_loop.models.streams import Form
from rlm_loop.models.wire import arguments_object, whole

Block = dict[str, Any]
#: What marks the end of a prefix that is to be kept for five minutes.
MARK = {"type": "ephemeral"}
_FINISH = {
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_THINKING = ("thinking", "redacted_thinking")
_ID = re.compile(r"[^a-zA-Z0-9_-]")


def to_request(prompt: Prompt, *, cache: bool) -> dict[str, Any]:
    """The parts of a request that come from the prompt.

    With `cache` three prefixes are marked: the tools with the system text, the conversation as it was in the request
    before, and all of it.  A prompt only grows, so each request reads what the one before wrote.
    """
    system: list[Block] = []
    turns: list[tuple[str, list[Block]]] = []
    before: tuple[list[Block], int] | None = None  # where the request before this one ended
    for message in prompt.messages:
        if message.role == "system":
            system += _text(message.text)
            continue
        role = "assistant" if message.role == "assistant" else "user"
        if role == "assistant" and turns and turns[-1][0] == "user":
            before = turns[-1][1], len(turns[-1][1]) - 1
        if not (blocks := _blocks(message)):
            continue  # nothing was said, and this API has no form for that
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, blocks))
    tools = [_tool(tool) for tool in prompt.tools]
    if cache:
        last = (turns[-1][1], len(turns[-1][1]) - 1) if turns and turns[-1][0] == "user" else None
        for blocks, place in filter(None, [(system or tools, -1), before, last]):
            if blocks:
                blocks[place] = {**blocks[place], "cache_control": MARK}
    found: dict[str, Any] = {"messages": [{"role": role, "content": blocks} for role, blocks in turns]}
    found |= {"system": system} if system else {}
    found |= {"tools": tools} if tools else {}
    found |= {"stop_sequences": list(prompt.stop)} if prompt.stop else {}
    if prompt.reply_schema is not None:
        found["output_config"] = {"format": {"type": "json_schema", "schema": dict(prompt.reply_schema)}}
    return found


def as_chat(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer in the shape of the chat API.  Its thinking is under `kept`, to be sent back as it came."""
    content = cast("list[Any]", answer["content"])
    blocks = [cast("Block", b) for b in content if isinstance(b, dict)]
    text, calls = _said(blocks)
    stated = str(answer.get("stop_reason") or "")
    message = {
        "content": text,
        "tool_calls": [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in calls
        ],
    }
    taken = ("content", "role", "type", "usage", "stop_reason")
    thought = {"kept": {"messages": blocks}} if any(b.get("type") in _THINKING for b in blocks) else {}
    return {
        **{k: v for k, v in answer.items() if k not in taken and v is not None},
        **thought,
        "choices": [{"message": message, "finish_reason": _FINISH.get(stated, stated)}],
        "usage": usage_as_chat(answer.get("usage")),
    }


def joined(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The body that the events of a stream make together.  Later figures of the usage are the whole's."""
    message: dict[str, Any] = {}
    blocks: dict[Any, Block] = {}
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


def _pieces(event: Mapping[str, Any]) -> Iterator[tuple[Kind, Any]]:
    block, delta = event.get("content_block") or {}, event.get("delta") or {}
    yield "call", f"\n{block['name']} " if block.get("type") == "tool_use" else ""
    yield "thinking", delta.get("thinking")
    yield "text", delta.get("text")
    yield "call", delta.get("partial_json")


EVENTS = Form(_pieces, joined, lambda event: event.get("type") == "message_stop")
"""How this API streams."""


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


def _said(blocks: Sequence[Block]) -> tuple[str, tuple[ToolCall, ...]]:
    """The text and the calls of an answer."""
    text = "".join(str(b.get("text") or "") for b in blocks if b.get("type") == "text")
    calls = [b for b in blocks if b.get("type") == "tool_use"]
    return text, tuple(
        ToolCall(str(b.get("id") or ""), str(b.get("name") or ""), json.dumps(b.get("input") or {}, ensure_ascii=False))
        for b in calls
    )


def _blocks(message: Message) -> list[Block]:
    if message.role == "tool":
        content = {"content": message.text} if message.text.strip() else {}
        return [{"type": "tool_result", "tool_use_id": _id(message.tool_call_id), **content}]
    if message.role != "assistant":
        return _text(message.text)
    own = _text(message.text) + [
        {"type": "tool_use", "id": _id(c.id), "name": c.name, "input": arguments_object(c.arguments)}
        for c in message.tool_calls
    ]
    stated: Any = (message.kept or {}).get("messages")
    if not isinstance(stated, list) or not own:  # an answer of thinking alone is none that can be sent
        return own
    kept = [cast("Block", b) for b in cast("list[Any]", stated) if isinstance(b, dict)]
    if _said(kept) == (message.text, message.tool_calls):  # in its own order, with thinking between the calls
        blocks = (_sendable(block) for block in kept)
        return [block for block in blocks if block]
    return [b for b in kept if b.get("type") in _THINKING] + own  # the loop has left some of it out


def _sendable(block: Block) -> Block:
    """A block of an answer as a block of a request: what it says, without what the provider adds to it."""
    kind = block.get("type")
    if kind == "text":
        return next(iter(_text(str(block.get("text") or ""))), {})
    if kind == "tool_use":
        return {"type": kind, "id": _id(block.get("id")), "name": block.get("name"), "input": block.get("input") or {}}
    return dict(block) if kind in _THINKING else {}


def _text(text: str) -> list[Block]:
    """A text of white space alone is refused."""
    return [{"type": "text", "text": text}] if text.strip() else []


def _id(stated: Any) -> str:
    return _ID.sub("_", str(stated or "")) or "call"


def _tool(tool: Mapping[str, Any]) -> Block:
    function = cast("Mapping[str, Any]", tool["function"])
    schema: Any = function.get("parameters") or {"type": "object", "properties": {}}
    return {"name": function["name"], "description": function.get("description", ""), "input_schema": schema}
