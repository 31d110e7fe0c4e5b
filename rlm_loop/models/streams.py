"""Replies that come in events: read as they come for who listens, and put together to the body of a whole reply.

The body is read like any other afterwards, so streaming changes no reply.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from rlm_loop.models.http import BrokenOff, Response
from rlm_loop.models.listening import Kind, listener, tell
from rlm_loop.traces.received import parse

Event = Mapping[str, Any]
#: What a server's data of any shape may raise in code that expects another one.
ODD = (TypeError, ValueError, AttributeError, KeyError, LookupError)


@dataclass(frozen=True)
class Form:
    """How an API streams.

    `pieces` are the texts in an event, `joined` is the body that the events make together, and `ends` says whether an
    event ends a reply.
    """

    pieces: Callable[[Event], Iterable[tuple[Kind, Any]]]
    joined: Callable[[Iterable[Event]], dict[str, Any]]
    ends: Callable[[Event], Any]


class Events:
    """The objects in server-sent events, or in lines of JSON; what is none is passed over."""

    def __init__(self) -> None:
        self._rest = b""
        self._lines: list[str] = []

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events that end in these bytes."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        for raw in whole:
            line = raw.rstrip(b"\r").decode("utf-8", "replace")
            if line.startswith("data:"):
                self._lines.append(line[5:].strip())
            elif line.startswith("{"):
                yield from _object(line)
            elif not line and self._lines:
                text, self._lines = "\n".join(self._lines), []
                yield from _object(text)


def _object(text: str) -> Iterator[Event]:
    with suppress(ValueError):
        value = parse(text)
        if isinstance(value, dict):
            yield cast("dict[str, Any]", value)


def events_of(data: bytes) -> Iterator[Event]:
    """The objects in a stream that is over."""
    return Events().feed(data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") + b"\n\n")


def hearing(form: Form) -> Callable[[bytes], None] | None:
    """What is to be given the bytes of a reply as they come; `None` where nobody listens."""
    if listener.get() is None:
        return None
    events = Events()

    def heard(data: bytes) -> None:
        for event in events.feed(data):
            tell_of(event, form)

    return heard


def tell_of(event: Event, form: Form) -> None:
    """Tell the listener what an event brings; what it means is settled when all of them are there."""
    with suppress(*ODD):
        for kind, text in form.pieces(event):
            if isinstance(text, str) and text:
                tell(kind, text)


def body_of(response: Response, form: Form) -> Any:
    """What a server answered, whole or in events; `None` for what cannot be read.

    Raises `BrokenOff` for a stream that ends before its reply does.
    """
    try:
        if not _in_events(response):
            return response.json()
        events = list(events_of(response.data))
        body = form.joined(events)
        over = body.get("error") or any(map(form.ends, events)) or response.data.rstrip().endswith(b"[DONE]")
    except ODD:
        return None
    if not over:
        raise BrokenOff("the stream ended before the reply did")
    return body


def fault_of(response: Response, body: Any) -> Response | None:
    """An error among the events of a stream as the answer that it would have been before the first of them.

    Its status is the one that it states, else 500; `None` where there is no error.
    """
    error: Any = body.get("error") if _in_events(response) and isinstance(body, dict) else None
    if not error:
        return None
    code: Any = cast("Event", error).get("code") if isinstance(error, Mapping) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    return Response(status, response.headers, "", json.dumps({"error": error}).encode())


def _in_events(response: Response) -> bool:
    return any(kind in response.headers.get("Content-Type", "") for kind in ("event-stream", "ndjson"))


def joined(events: Iterable[Event]) -> dict[str, Any]:
    """The body that the chunks of a chat completion make together."""
    whole: dict[str, Any] = {}
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    calls: list[tuple[Any, dict[str, Any]]] = []
    finish = None
    for event in events:
        whole |= {k: v for k, v in event.items() if v is not None and k not in ("choices", "obfuscation")}
        for choice in event.get("choices") or ():
            if choice.get("index", 0) != 0:
                continue
            finish = choice.get("finish_reason") or finish
            for name, value in (choice.get("delta") or {}).items():
                if name == "tool_calls":
                    for call in value or ():
                        _grow(_call(calls, call), call)
                elif isinstance(value, Mapping):  # a function call of the older form
                    _grow(message.setdefault(name, {}), cast("Event", value))
                elif isinstance(value, (str, list)) and value and name != "role":
                    message[name] = _joined(message.get(name), value)
    if calls:
        message["tool_calls"] = [call for _, call in calls]
    return {**whole, "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def _joined(so_far: Any, more: str | list[Any]) -> Any:
    """Text or parts, and what comes next; where a provider goes from parts to text (Mistral), the text is a part."""
    if not so_far or isinstance(so_far, str) == isinstance(more, str):
        return so_far + more if so_far else more
    return _parts(so_far) + _parts(more)


def _parts(content: str | list[Any]) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _call(calls: list[tuple[Any, dict[str, Any]]], more: Event) -> dict[str, Any]:
    """The call that a chunk goes on with.  Some servers give all calls the same index: then a new id is a new call."""
    index, name = more.get("index", 0), more.get("id")
    for place, call in reversed(calls):
        if place == index and (not name or name == call.get("id", name)):
            return call
    calls.append((index, {}))
    return calls[-1][1]


def _grow(call: dict[str, Any], more: Event) -> None:
    for name, value in more.items():
        if isinstance(value, Mapping):
            _grow(call.setdefault(name, {}), cast("Event", value))
        elif isinstance(value, str) and name in ("arguments", "input", "name"):
            call[name] = call.get(name, "") + value
        elif value is not None:
            call[name] = value


def _pieces(event: Event) -> Iterator[tuple[Kind, Any]]:
    for choice in event.get("choices") or ():
        if choice.get("index", 0) != 0:
            continue
        delta = choice.get("delta") or {}
        yield "thinking", delta.get("reasoning_content") or delta.get("reasoning")
        yield "text", delta.get("content")
        for call in delta.get("tool_calls") or ():
            function = call.get("function") or call.get("custom") or {}
            yield "call", f"\n{function['name']} " if function.get("name") else ""
            yield "call", function.get("arguments") or function.get("input")


#: What asks for a chat completion in chunks, the last of them with the usage.
STREAMED: Mapping[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
CHAT = Form(_pieces, joined, lambda event: any(c.get("finish_reason") for c in event.get("choices") or ()))
"""Chat completions."""
