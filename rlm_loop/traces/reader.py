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
from rlm_loop.traces.runs import Run, RunEvents, RunLines, chosen, runs_in
from rlm_loop.traces.trace import TraceError

#: A call or a request, by the names that it may go by.
_Key = tuple[Any, ...]


@dataclass(frozen=True, repr=False)
class RunRecord(RunEvents[tuple[Mapping[str, Any], ...]]):
    """A run as read back: its events, and the model calls as (request digest, prompt, reply)."""

    events: tuple[Mapping[str, Any], ...]
    number: int = 0

    def _repr_html_(self) -> str:
        return drawing("rlm_loop.agents.past_run.outcome_of")(self).to_html()

    def __repr__(self) -> str:
        return f"<RunRecord {self.start.get('agent')} with {self.start.get('model')}: {self.stop}>"

    def of(self, event: str) -> list[Mapping[str, Any]]:
        """All events of one kind."""
        return [e for e in self.events if e["event"] == event]

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Texts that events name by SHA-256, such as the prompts of sub-calls: stored ones, and those of messages."""
        messages = ["".join(s["text"] for s in e["message"]["spans"]) for e in self.of("message")]
        texts = {hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(): text for text in messages}
        return texts | {e["sha256"]: str(e["text"]) for e in self.of("text")}

    def calls(self) -> Iterator[tuple[str, Prompt, Reply]]:
        """Every model call that got a reply, in order, with its whole request."""
        return ((event["request"], prompt, reply) for event, prompt, reply in self.replies())

    def requests(self) -> Iterator[tuple[Mapping[str, Any], Prompt]]:
        """Every `request` event, in order, with the whole request.

        Raises `TraceError` where the trace does not hold what a request is made of.
        """
        return ((event, prompt) for event, prompt, reply in self._exchanges() if reply is None)

    def replies(self) -> Iterator[tuple[Mapping[str, Any], Prompt, Reply]]:
        """Every `reply` event, in order, with the whole request that it answers and the reply."""
        return ((event, prompt, reply) for event, prompt, reply in self._exchanges() if reply is not None)

    def _exchanges(self) -> Iterator[tuple[Mapping[str, Any], Prompt, Reply | None]]:
        bodies: dict[str, Message] = {}
        settings: dict[str, Mapping[str, Any]] = {}
        asked: dict[_Key, Prompt] = {}
        for number, e in enumerate(self.events, 1):
            prompt = reply = None
            with whole(e, number):
                match e["event"]:
                    case "message":
                        bodies[e["hash"]] = message_of(e["message"])
                    case "settings":
                        settings[e["hash"]] = e
                    case "request":
                        # requests of equal bytes may differ in their causes: each caller goes on from its own
                        base = (
                            next(asked[key] for key in _keys(e, e["base"])[-2:] if key in asked)
                            if e["base"]
                            else Prompt()
                        )
                        messages = (*base.messages[: e.get("kept")], *(bodies[h] for h in e["added"]))
                        rest = settings[e["settings"]]
                        prompt = Prompt(messages, tuple(rest["tools"]), tuple(rest["stop"]), rest["reply_schema"])
                        asked |= dict.fromkeys(_keys(e, e["digest"]), prompt)
                    case "reply":
                        reply = reply_of(e["reply"])
                        prompt = next((asked[key] for key in _keys(e, e["request"]) if key in asked), None)
                    case _:
                        pass
            if prompt is not None:
                yield e, prompt, reply


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


def _keys(event: Mapping[str, Any], digest: str) -> list[_Key]:
    """The names of a request, the surest first: its call, its caller with its hash, its hash."""
    call: list[_Key] = [("call", event["call_id"])] if "call_id" in event else []
    return [*call, (digest, event.get("node", "0"), event.get("depth", 0)), (digest,)]


def read(path: str | Path, *, run: Run = None) -> RunRecord:
    """Read one run of a trace file; `.gz` files are read compressed.

    `run` is the run's id or the beginning of it, or its number from 0, negative from the end.  Without it, it is the
    last one that was begun and not marked as broken off.  A torn last line of a run is ignored.  Raises `TraceError`
    for a missing file, one that is not a trace, another schema, a damaged line in the middle of the run, and for a run
    that the file does not hold, with those that it does.
    """
    runs = runs_in(path)
    return _record(runs[chosen(path, runs, run)])


def read_all(path: str | Path) -> Iterator[RunRecord]:
    """Every run of a trace file, in the order in which they were begun, those that were broken off too."""
    return map(_record, runs_in(path))


def _record(lines: RunLines) -> RunRecord:
    if lines.fault is not None:
        raise TraceError(lines.fault)
    return RunRecord(tuple(lines.events), lines.number)


def records_of(events: Iterable[Mapping[str, Any]]) -> tuple[RunRecord, ...]:
    """The runs of events that are at hand (`Trace.events`), in the order in which they were begun."""
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for event in events:
        runs.setdefault(str(event.get("run", "")), []).append(event)
    return tuple(RunRecord(tuple(run), number) for number, run in enumerate(runs.values()))


def message_of(data: Mapping[str, Any]) -> Message:
    """A `Message` from its stored form."""
    spans = tuple([Span(s["text"], s["cause"]) for s in data["spans"]])
    return Message(data["role"], spans, _tool_calls(data), data["tool_call_id"], data["turn"])


def reply_of(data: Mapping[str, Any]) -> Reply:
    """A `Reply` from its stored form."""
    usage = None if data.get("usage") is None else Usage.of(data["usage"])
    times, extra = (data.get("seconds", 0.0), data.get("waited", 0.0)), data.get("extra") or {}
    return Reply(data["text"], _tool_calls(data), data["finish_reason"], usage, *times, extra)


def _tool_calls(data: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    return tuple([ToolCall(c["id"], c["name"], c["arguments"]) for c in data["tool_calls"]])
