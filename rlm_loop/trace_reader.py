"""A trace read back: its runs, their events, and every model call with its whole request."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rlm_loop.messages import Message, Prompt, Reply, Span, ToolCall, Usage
from rlm_loop.trace import READABLE, SCHEMA, TraceError


@dataclass(frozen=True, repr=False)
class RunRecord:
    """One run as read back: its events, and the model calls as (request digest, prompt, reply)."""

    events: tuple[Mapping[str, Any], ...]

    @property
    def start(self) -> Mapping[str, Any]:
        return self.events[0]

    @property
    def end(self) -> Mapping[str, Any] | None:
        """The root's `run_end` event; `None` if the run never came to its end."""
        return next((e for e in reversed(self.events) if e["event"] == "run_end" and _of_root(e)), None)

    def _repr_html_(self) -> str:
        from rlm_loop.show_record import record_html  # only when a notebook asks

        return record_html(self.events)

    def _repr_markdown_(self) -> str:
        from rlm_loop.show_record import record_markdown

        return record_markdown(self.events)

    def __repr__(self) -> str:
        from rlm_loop.show_record import record_line

        return f"<RunRecord {record_line(self.events)}>"

    def of(self, event: str) -> list[Mapping[str, Any]]:
        """All events of one kind."""
        return [e for e in self.events if e["event"] == event]

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Texts that events name by SHA-256, such as the prompts of sub-calls: stored ones, and those of messages."""
        found = {e["sha256"]: str(e["text"]) for e in self.of("text")}
        for e in self.of("message"):
            text = "".join(s["text"] for s in e["message"]["spans"])
            found.setdefault(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), text)
        return found

    def calls(self) -> Iterator[tuple[str, Prompt, Reply]]:
        """Every model call that got a reply, in order, with its whole request."""
        return ((event["request"], prompt, reply) for event, prompt, reply in self.replies())

    def requests(self) -> Iterator[tuple[Mapping[str, Any], Prompt]]:
        """Every `request` event, in order, with the whole request.

        Raises `TraceError` where the trace does not hold what a request is made of.
        """
        bodies: dict[str, Message] = {}
        settings: dict[str, Mapping[str, Any]] = {}
        grown: dict[str, tuple[Message, ...]] = {}
        for number, e in enumerate(self.events, 1):
            if e["event"] == "message":
                bodies[e["hash"]] = message_of(e["message"])
            elif e["event"] == "settings":
                settings[e["hash"]] = e
            elif e["event"] == "request":
                try:
                    before = grown[e["base"]] if e["base"] else ()
                    messages = (*before[: e.get("kept")], *(bodies[h] for h in e["added"]))
                    rest = settings[e["settings"]]
                except KeyError as missing:
                    what = f"a part of the request in event {number} of the run is missing ({str(missing)[1:13]})"
                    raise TraceError(f"{what}: the trace was cut or edited; restore it from a copy") from None
                grown[e["digest"]] = messages
                yield e, Prompt(messages, tuple(rest["tools"]), tuple(rest["stop"]), rest["reply_schema"])

    def replies(self) -> Iterator[tuple[Mapping[str, Any], Prompt, Reply]]:
        """Every `reply` event, in order, with the whole request and the reply."""
        prompts = {e["digest"]: prompt for e, prompt in self.requests()}
        for e in self.events:
            if e["event"] == "reply" and e["request"] in prompts:
                yield e, prompts[e["request"]], reply_of(e["reply"])


def read(path: str | Path, *, run: int = -1) -> RunRecord:
    """Read one run of a trace file (the last by default); `.gz` files are read compressed.

    A torn last line is ignored.  Raises `TraceError` for a missing file, one that is not a trace, another schema
    and a damaged line in the middle.
    """
    runs = list(read_all(path))
    try:
        return runs[run]
    except IndexError:
        raise TraceError(f"{path} holds {len(runs)} runs; there is no run {run}") from None


def read_all(path: str | Path) -> Iterator[RunRecord]:
    """Every run of a trace file, in order."""
    try:
        raw = Path(path).read_bytes()
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8", "replace")
    except OSError as error:
        raise TraceError(f"cannot read the trace {path}: {error.strerror}") from error
    events: list[Mapping[str, Any]] = []
    for number, event in _events(path, text.split("\n")):
        if event["event"] == "run_start":
            if (found := event.get("schema", 0)) not in READABLE:
                hint = "upgrade rlm-loop" if found > SCHEMA else "record it again"
                raise TraceError(f"{path} has schema {found}; this version reads {READABLE[0]} to {SCHEMA}: {hint}")
            if events:
                yield RunRecord(tuple(events))
            events = []
        elif not events:
            raise TraceError(f"{path}:{number} is not a trace of rlm_loop: the first event is not run_start")
        events.append(event)
    if events:
        yield RunRecord(tuple(events))


def _events(path: str | Path, lines: list[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    damaged: int | None = None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if not isinstance(event, dict) or "event" not in event:
            damaged = number
            continue
        # a torn line is forgiven at the end of the file and at the end of a run that another was appended to
        if damaged is not None and event["event"] != "run_start":
            raise TraceError(f"{path}:{damaged} is damaged in the middle of the file; restore it from a copy")
        damaged = None
        yield number, event


def message_of(data: Mapping[str, Any]) -> Message:
    """A `Message` from its stored form."""
    return Message(
        data["role"],
        tuple(Span(s["text"], s["cause"]) for s in data["spans"]),
        tuple(_tool_calls(data["tool_calls"])),
        data["tool_call_id"],
        data["turn"],
    )


def reply_of(data: Mapping[str, Any]) -> Reply:
    """A `Reply` from its stored form."""
    usage = data.get("usage")
    return Reply(
        data["text"],
        tuple(_tool_calls(data["tool_calls"])),
        data["finish_reason"],
        None if usage is None else Usage(**{k: v for k, v in usage.items() if k != "is"}),
        data.get("seconds", 0.0),
        data.get("waited", 0.0),
        data.get("extra") or {},
    )


def _of_root(event: Mapping[str, Any]) -> bool:
    """Traces of schema 2 name no node; one of several attempts is not the whole (node "0.1", at depth 0)."""
    return event.get("node", "0") == "0" and not event.get("depth", 0)


def _tool_calls(data: Iterable[Mapping[str, Any]]) -> Iterator[ToolCall]:
    return (ToolCall(c["id"], c["name"], c["arguments"]) for c in data)
