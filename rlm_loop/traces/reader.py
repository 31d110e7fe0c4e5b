"""A trace read back: its runs, their events, and every model call with its whole request."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rlm_loop.messages import Message, Prompt, Reply, Span, ToolCall, Usage
from rlm_loop.traces.display import drawing
from rlm_loop.traces.runs import Run, chosen, runs_in
from rlm_loop.traces.trace import TraceError


@dataclass(frozen=True, repr=False)
class RunRecord:
    """One run as read back: its events, and the model calls as (request digest, prompt, reply).

    `number` is its place in the file, from 0.
    """

    events: tuple[Mapping[str, Any], ...]
    number: int = 0

    @property
    def start(self) -> Mapping[str, Any]:
        return self.events[0]

    @property
    def id(self) -> str:
        return str(self.start.get("run", ""))

    @property
    def aborted(self) -> str | None:
        """Why this run no longer counts, such as an attempt that was broken off and tried again; else `None`."""
        return next((str(e.get("reason", "")) for e in reversed(self.events) if e["event"] == "aborted"), None)

    @property
    def end(self) -> Mapping[str, Any] | None:
        """The root's `run_end` event; `None` if the run never came to its end."""
        return next((e for e in reversed(self.events) if e["event"] == "run_end" and _of_root(e)), None)

    def _repr_html_(self) -> str:
        return drawing("rlm_loop.agents.past_run.outcome_of")(self).to_html()

    def __repr__(self) -> str:
        stop = "no end" if self.end is None else self.end.get("stop")
        return f"<RunRecord {self.start.get('agent')} with {self.start.get('model')}: {stop}>"

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
        grown: dict[tuple[Any, ...], tuple[Message, ...]] = {}
        for number, e in enumerate(self.events, 1):
            with whole(e, number):
                if e["event"] == "message":
                    bodies[e["hash"]] = message_of(e["message"])
                elif e["event"] == "settings":
                    settings[e["hash"]] = e
                if e["event"] != "request":
                    continue
                before = _grown(grown, e) if e["base"] else ()
                messages = (*before[: e.get("kept")], *(bodies[h] for h in e["added"]))
                rest = settings[e["settings"]]
                # requests of equal bytes may differ in their causes: each caller goes on from its own
                grown[e["digest"],] = grown[(e["digest"], *_caller(e))] = messages
                prompt = Prompt(messages, tuple(rest["tools"]), tuple(rest["stop"]), rest["reply_schema"])
            yield e, prompt

    def replies(self) -> Iterator[tuple[Mapping[str, Any], Prompt, Reply]]:
        """Every `reply` event, in order, with the whole request that it answers and the reply."""
        requests = self.requests()
        asked: dict[tuple[Any, ...], Prompt] = {}
        for number, e in enumerate(self.events, 1):
            if e["event"] == "request":
                _, prompt = next(requests)
                with whole(e, number):
                    asked[e["digest"],] = asked[(e["digest"], *_caller(e))] = asked[_call(e, e["digest"])] = prompt
            elif e["event"] == "reply":
                with whole(e, number):
                    key = e["request"]
                    places: tuple[tuple[Any, ...], ...] = (_call(e, key), (key, *_caller(e)), (key,))
                    known = next((place for place in places if place in asked), None)
                    reply = reply_of(e["reply"])
                if known is not None:
                    yield e, asked[known], reply


@contextmanager
def whole(event: Mapping[str, Any], number: int | None = None) -> Generator[None]:
    """Raise `TraceError` where an event lacks what it must have, or has something else in its place.

    `number` is its place among those of the run, from 1; without it, its turn is named.
    """
    place = f"an event of turn {event.get('turn', 0)}" if number is None else f"event {number} of the run"
    what = f"{place} ({str(event['event'])[:20]})"
    try:
        yield
    except KeyError as missing:
        part = re.sub(r"\W", "", str(missing))[:12]
        what = f"a part of {what} is missing ({part})"
    except (TypeError, AttributeError, ValueError, LookupError):
        what = f"{what} is damaged"
    else:
        return
    raise TraceError(f"{what}: the trace was cut or edited; restore it from a copy") from None


def _caller(event: Mapping[str, Any]) -> tuple[Any, Any]:
    """Who makes a call."""
    return event.get("node", "0"), event.get("depth", 0)


def _call(event: Mapping[str, Any], key: str) -> tuple[Any, ...]:
    """Which call: its id, where the trace has such."""
    return ("call", event["call_id"]) if "call_id" in event else (key, *_caller(event))


def _grown(grown: Mapping[tuple[Any, ...], tuple[Message, ...]], event: Mapping[str, Any]) -> tuple[Message, ...]:
    """The messages that a request grew from: the latest of its caller with that hash."""
    base = event["base"]
    own = grown.get((base, *_caller(event)))
    return grown[base,] if own is None else own


def read(path: str | Path, *, run: Run = None) -> RunRecord:
    """Read one run of a trace file; `.gz` files are read compressed.

    `run` is the run's id or the beginning of it, or its number from 0, negative from the end.  Without it, it is the
    last one that was begun and not marked as broken off.  A torn last line of a run is ignored.  Raises `TraceError`
    for a missing file, one that is not a trace, another schema, a damaged line in the middle of the run, and for a run
    that the file does not hold, with those that it does.
    """
    runs = runs_in(path)
    found = runs[chosen(path, runs, run)]
    if found.fault is not None:
        raise TraceError(found.fault)
    return RunRecord(tuple(found.events), found.number)


def read_all(path: str | Path) -> Iterator[RunRecord]:
    """Every run of a trace file, in the order in which they were begun, those that were broken off too."""
    for found in runs_in(path):
        if found.fault is not None:
            raise TraceError(found.fault)
        yield RunRecord(tuple(found.events), found.number)


def records_of(events: Iterable[Mapping[str, Any]]) -> tuple[RunRecord, ...]:
    """The runs of events that are at hand (`Trace.events`), in the order in which they were begun."""
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for event in events:
        runs.setdefault(str(event.get("run", "")), []).append(event)
    return tuple(RunRecord(tuple(own), number) for number, own in enumerate(runs.values()))


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
        None if usage is None else Usage.of(usage),
        data.get("seconds", 0.0),
        data.get("waited", 0.0),
        data.get("extra") or {},
    )


def _of_root(event: Mapping[str, Any]) -> bool:
    """One of several attempts is not the whole (node "0.1", at depth 0)."""
    return event.get("node", "0") == "0" and not event.get("depth", 0)


def _tool_calls(data: Iterable[Mapping[str, Any]]) -> Iterator[ToolCall]:
    return (ToolCall(c["id"], c["name"], c["arguments"]) for c in data)
