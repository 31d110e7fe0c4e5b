"""Replies in events: told as they come to whoever listens, and put together to the body of a whole reply.

The body is read like any other afterwards, so streaming changes no reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

from rlm_loop.models.base import Kind, listener, tell
from rlm_loop.models.wire import ODD, arguments_text, text_of
from rlm_loop.traces.received import parse

Event = Mapping[str, Any]
#: Asks for a chat completion in chunks, the last of them with the usage.
STREAMED: Mapping[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}


def events_of(data: bytes) -> Iterator[Event]:
    """Yield the objects in server-sent events, one a line, or in lines of JSON; what is none is passed over."""
    for line in data.splitlines():
        with suppress(ValueError):
            if isinstance(value := parse(line.removeprefix(b"data:").decode("utf-8", "replace")), dict):
                yield cast("dict[str, Any]", value)


def hearing(chunk_of: Callable[[Event], Event]) -> Callable[[bytes], object]:
    """Return a function to be given the bytes of a reply as they come, which tells the listener, if there is one.

    `chunk_of` makes a chunk of a chat completion of an event.
    """
    if listener.get() is None:
        return bool
    rest = b""

    def heard(data: bytes) -> None:
        nonlocal rest
        lines, _, rest = (rest + data).rpartition(b"\n")
        for event in events_of(lines):
            with suppress(*ODD):  # what a chunk means is settled when all of them are there
                for delta, _ in _deltas(chunk_of(event)):
                    for kind, text in _pieces(delta):
                        if text:
                            tell(kind, text)

    return heard


def _pieces(delta: Event) -> Iterator[tuple[Kind, str]]:
    yield "thinking", text_of(delta.get("reasoning_content") or delta.get("reasoning") or delta.get("thinking"))
    yield "text", text_of(delta.get("content"))
    for call in delta.get("tool_calls") or ():
        function = call.get("function") or {}
        yield "call", f"\n{function['name']} " if function.get("name") else ""
        yield "call", arguments_text(function.get("arguments"))


def _deltas(chunk: Event) -> Iterator[tuple[Event, Any]]:
    """Yield what a chunk adds to the first choice, and why that ended."""
    for choice in chunk.get("choices") or ():
        if choice.get("index", 0) == 0:
            yield choice.get("delta") or {}, choice.get("finish_reason")


def joined(chunks: Iterable[Event]) -> dict[str, Any]:
    """Return the body that the chunks of a chat completion make together."""
    body: dict[str, Any] = {}
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    calls: list[dict[str, Any]] = []
    finish = None
    for chunk in chunks:
        body |= {k: v for k, v in chunk.items() if v is not None and k not in ("choices", "obfuscation", "usage")}
        if (usage := highest(body.get("usage"), chunk.get("usage"))) is not None:
            body["usage"] = usage
        for delta, ended in _deltas(chunk):
            finish = ended or finish
            message["content"] += text_of(delta.get("content"))
            for call in delta.get("tool_calls") or ():
                _grow(calls, call)
            for name, value in delta.items():
                if isinstance(value, (str, list)) and value and name not in ("role", "content", "tool_calls"):
                    message[name] = message[name] + value if name in message else value
    if calls:
        message["tool_calls"] = calls
    return {**body, "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def _grow(calls: list[dict[str, Any]], more: Event) -> None:
    """Add a piece of a call; some servers give all calls the same index, and then a new id is a new call."""
    index, name = more.get("index", 0), more.get("id")
    call: Any = next((c for c in calls[::-1] if c["index"] == index and (not name or name == c["id"])), None)
    if call is None:
        call = {"index": index, "id": name, "type": "function", "function": {"name": "", "arguments": ""}}
        calls.append(call)
    function, new = call["function"], more.get("function") or {}
    called = new.get("name") or ""  # one that is sent again is the same name
    function["name"] = called if called.startswith(function["name"]) else function["name"] + called
    function["arguments"] += arguments_text(new.get("arguments"))


def highest(so_far: Any, more: Any) -> Any:
    """Return the figures of a usage that comes several times: each adds up over the reply, so none falls."""
    if isinstance(so_far, Mapping) and isinstance(more, Mapping):
        before, now = cast("Event", so_far), cast("Event", more)
        return {**before, **{k: highest(before.get(k), v) for k, v in now.items()}}
    if isinstance(so_far, int | float) and isinstance(more, int | float):
        return max(so_far, more)
    return so_far if more is None else more
