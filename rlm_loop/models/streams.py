"""Replies in events: read as they come for whoever listens, and put together to the body of a whole reply.

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
#: Raised by code that expects one shape and gets a server's data of another.
ODD = (TypeError, ValueError, AttributeError, LookupError)


@dataclass(frozen=True)
class Form:
    """The way in which an API streams.

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
        """Yield the events that end in these bytes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for raw in lines:
            line, text = raw.rstrip(b"\r").decode("utf-8", "replace"), ""
            if line.startswith("data:"):
                self._lines.append(line[5:].strip())
            elif line.startswith("{"):
                text = line
            elif not line:
                text, self._lines = "\n".join(self._lines), []
            with suppress(ValueError):
                if isinstance(value := parse(text), dict):
                    yield cast("dict[str, Any]", value)


def events_of(data: bytes) -> Iterator[Event]:
    """Return the objects in a stream that is over."""
    return Events().feed(data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") + b"\n\n")


def hearing(form: Form) -> Callable[[bytes], None] | None:
    """Return a function to be given the bytes of a reply as they come; `None` where nobody listens."""
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
    """Return what a server answered, whole or in events; `None` for what cannot be read.

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
    """Return an error among the events of a stream as the answer that it would have been before the first of them.

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
    """Return the body that the chunks of a chat completion make together."""
    body: dict[str, Any] = {}
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    calls: list[tuple[Any, dict[str, Any]]] = []
    finish = None
    for event in events:
        body |= {k: v for k, v in event.items() if v is not None and k not in ("choices", "obfuscation", "usage")}
        if (usage := highest(body.get("usage"), event.get("usage"))) is not None:
            body["usage"] = usage
        for choice in event.get("choices") or ():
            if choice.get("index", 0) != 0:
                continue
            finish = choice.get("finish_reason") or finish
            for name, value in (choice.get("delta") or {}).items():
                if name == "tool_calls":
                    for call in value or ():
                        _grow(_call(calls, call), call)
                elif isinstance(value, (str, list)) and value and name != "role":
                    message[name] = _joined(message.get(name), value)
    if calls:
        message["tool_calls"] = [call for _, call in calls]
    return {**body, "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def highest(so_far: Any, more: Any) -> Any:
    """Return the figures of a usage that comes several times: each adds up over the reply, so none falls."""
    if isinstance(so_far, Mapping) and isinstance(more, Mapping):
        before, now = cast("Event", so_far), cast("Event", more)
        return {**before, **{k: highest(before.get(k), v) for k, v in now.items()}}
    if isinstance(so_far, int | float) and isinstance(more, int | float):
        return max(so_far, more)
    return so_far if more is None else more


def _joined(so_far: Any, more: str | list[Any]) -> Any:
    """Return text or parts with what comes next; where a provider goes from parts to text (Mistral), it is a part."""
    if not so_far or isinstance(so_far, str) == isinstance(more, str):
        return so_far + more if so_far else more
    return _parts(so_far) + _parts(more)


def _parts(content: str | list[Any]) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _call(calls: list[tuple[Any, dict[str, Any]]], more: Event) -> dict[str, Any]:
    """Return the call that a chunk goes on with.

    Some servers give all calls the same index: then a new id is a new call.
    """
    index, name = more.get("index", 0), more.get("id")
    for place, call in reversed(calls):
        if place == index and (not name or name == call.get("id", name)):
            return call
    calls.append((index, {}))
    return calls[-1][1]


def _grow(call: dict[str, Any], more: Event) -> None:
    for key, value in more.items():
        before = call.get(key, "")
        if isinstance(value, Mapping):
            _grow(call.setdefault(key, {}), cast("Event", value))
        elif isinstance(value, str) and key in ("arguments", "input"):
            call[key] = before + value
        elif isinstance(value, str) and key == "name":  # one that is sent again is the same name
            call[key] = value if value.startswith(before) else before + value
        elif value is not None:
            call[key] = value


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


#: Asks for a chat completion in chunks, the last of them with the usage.
STREAMED: Mapping[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
#: Chat completions.
CHAT = Form(_pieces, joined, lambda event: any(c.get("finish_reason") for c in event.get("choices") or ()))
