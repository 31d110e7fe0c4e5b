"""A trace read back: its runs, their events, and every model call with its whole request."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rlm_loop.messages import Message, Prompt, Reply, Span, ToolCall, Usage
from rlm_loop.traces.received import file_bytes, parse
from rlm_loop.traces.shapes import sound
from rlm_loop.traces.trace import SCHEMA, LineFile, TraceError
from rlm_loop.traces.values import drawing

#: A run of a file: its id, its number, or the one that counts (`None`).
Run = int | str | None

_BEGINS = '{"run":"'  # how a line begins
_NAMED = re.compile(r'\{"run":"([^"\\]+)"')


@dataclass(frozen=True, repr=False)
class RunRecord:
    """A run as read back: its events, `run_start` first, and its number in the file, from 0.

    `fault` says why its lines cannot be relied on; `read` raises it.
    """

    events: tuple[Mapping[str, Any], ...]
    number: int = 0
    fault: str | None = None

    @property
    def start(self) -> Mapping[str, Any]:
        return self.events[0]

    @property
    def id(self) -> str:
        return str(self.start.get("run", ""))

    @property
    def aborted(self) -> str | None:
        """The reason why this run no longer counts, such as an attempt that was tried again; else `None`."""
        return next((str(e.get("reason", "")) for e in self.of("aborted")), None)

    @property
    def end(self) -> Mapping[str, Any] | None:
        """The root's `run_end` event; `None` if the run never came to its end."""
        return next((e for e in reversed(self.of("run_end")) if e.get("node", "0") == "0"), None)

    def __str__(self) -> str:
        stop = "no end" if self.end is None else self.end.get("stop")
        mark = "" if self.aborted is None else ", tried again"
        return f"{self.id} ({self.start.get('agent', '?')}, {self.start.get('task', '?')}: {stop}{mark})"

    def __repr__(self) -> str:
        return f"<RunRecord {self}>"

    def _repr_html_(self) -> str:
        return drawing("rlm_loop.agents.past_run.outcome_of")(self).to_html()

    def of(self, event: str) -> list[Mapping[str, Any]]:
        """All events of one kind."""
        return [e for e in self.events if e["event"] == event]

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Texts that events name by SHA-256, such as the prompts of sub-calls: stored ones, and those of messages."""
        messages = ["".join(s["text"] for s in e["message"]["spans"]) for e in self.of("message")]
        texts = {hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(): text for text in messages}
        return texts | {e["sha256"]: e["text"] for e in self.of("text")}

    def replies(self) -> Iterator[tuple[Mapping[str, Any], Prompt, Reply]]:
        """Every `reply` event, in order, with the whole request that it answers and the reply."""
        return ((event, prompt, reply) for event, prompt, reply in self.exchanges() if reply is not None)

    def exchanges(self) -> Iterator[tuple[Mapping[str, Any], Prompt, Reply | None]]:
        """Every `request` and `reply` event, in order, with the whole request, and the reply of the latter.

        Raises `TraceError` where the trace does not hold what a request is made of.
        """
        bodies: dict[str, Message] = {}
        settings: dict[str, Mapping[str, Any]] = {}
        asked: dict[int, Prompt] = {}  # by call
        latest: dict[tuple[str, str], Prompt] = {}  # by caller and hash: requests of equal bytes may differ in causes
        for e in self.events:
            prompt = reply = None
            with whole(e):
                match e["event"]:
                    case "message":
                        bodies[e["hash"]] = message_of(e["message"])
                    case "settings":
                        settings[e["hash"]] = e
                    case "request":
                        node = e.get("node", "0")
                        base = latest[node, e["base"]] if e["base"] else Prompt()
                        messages = (*base.messages[: e.get("kept")], *(bodies[h] for h in e["added"]))
                        rest = settings[e["settings"]]
                        prompt = Prompt(messages, tuple(rest["tools"]), tuple(rest["stop"]), rest["reply_schema"])
                        latest[node, e["digest"]] = asked[e["call_id"]] = prompt
                    case "reply":
                        prompt, reply = asked[e["call_id"]], reply_of(e["reply"])
                    case _:
                        pass
            if prompt is not None:
                yield e, prompt, reply


@contextlib.contextmanager
def whole(event: Mapping[str, Any]) -> Generator[None]:
    """Raise `TraceError` where an event lacks what it must have, or has something else in its place."""
    try:
        yield
    except (TypeError, AttributeError, ValueError, LookupError) as error:
        part = re.sub(r"\W", "", str(error))[:12] if isinstance(error, KeyError) else ""
        what = f"an event of turn {event.get('turn', 0)} ({str(event['event'])[:20]})"
        fault = f"lacks {part}" if part else "is damaged"
        raise TraceError(f"{what} {fault}: the trace was cut or edited; restore it from a copy") from None


def read(path: str | Path, *, run: Run = None) -> RunRecord:
    """Read one run of a trace file; `.gz` files are read compressed.

    `run` is the run's id, or its number from 0, negative from the end.  Without it, it is the last one that was begun
    and not marked as broken off.  A torn last line of a run is ignored.  Raises `TraceError` for a missing file, one
    that is not a trace, another schema, a damaged line in the middle of the run, and for a run that the file does not
    hold, with those that it does.
    """
    runs = runs_in(path)
    if run in (None, ""):
        found = [r for r in runs if r.aborted is None] or runs
    else:
        numbered = [r for r in runs if str(run) in (str(r.number), str(r.number - len(runs)))]
        found = [r for r in runs if r.id == run] or numbered  # an id is there again in a file made of copies
    if found:
        return _relied_on(found[-1])
    listed = f": {'; '.join(map(str, runs))}" if runs else ""
    raise TraceError(f"{path} holds {len(runs)} runs{listed}; there is no run {run or 'that counts'}")


def read_all(path: str | Path) -> Iterator[RunRecord]:
    """Every run of a trace file, in the order in which they were begun, those that were broken off too."""
    return map(_relied_on, runs_in(path))


def _relied_on(record: RunRecord) -> RunRecord:
    if record.fault is not None:
        raise TraceError(record.fault)
    return record


def runs_in(path: str | Path) -> list[RunRecord]:
    """The runs of a trace file, in the order in which they were begun.

    Lines of runs that were written at the same time may stand between each other.  Raises `TraceError` for a file that
    cannot be read or is no trace.
    """
    runs: list[list[Mapping[str, Any]]] = []
    known: dict[str, int] = {}  # the latest run of each id
    latest: list[int] = []  # by run, the line of its latest event
    broken: dict[str | None, int] = {}  # by the id that it tells, the latest line that is no event
    faults: dict[int, str] = {}
    for number, line in enumerate(_text(path).split("\n"), 1):
        if not line.strip("\0\r\t "):  # zeros are what a power failure leaves of what was not written yet
            continue
        event = _event(line)
        if event is None:
            named = _NAMED.match(line)
            if named or not _BEGINS.startswith(line[: len(_BEGINS)]):  # torn within the id, it was a run's last line
                broken[named and named[1]] = number
            continue
        id = str(event.get("run", ""))
        if event["event"] == "run_start":
            known[id] = len(runs)
            if (schema := event.get("schema", 0)) != SCHEMA:
                faults[len(runs)] = f"{path} has schema {schema}; this version of rlm-loop reads {SCHEMA}"
            runs.append([])
            latest.append(number)
        elif id not in known:
            raise TraceError(f"{path}:{number} is not a trace of rlm_loop: the first event is not run_start")
        run = known[id]
        runs[run].append(event)
        if event["event"] == "aborted":  # which another writes
            continue
        if (place := max(broken.get(id, 0), broken.get(None, 0))) > latest[run]:
            faults.setdefault(run, f"{path}:{place} is damaged in the middle of the file; restore it from a copy")
        latest[run] = number
    if None in broken and not runs:
        raise TraceError(f"{path} is not a trace of rlm_loop: no line of it is an event")
    return [RunRecord(tuple(events), run, faults.get(run)) for run, events in enumerate(runs)]


def _text(path: str | Path) -> str:
    try:
        return file_bytes(path).decode("utf-8", "replace")
    except (OSError, ValueError) as error:  # a name that holds a zero byte is a ValueError
        raise TraceError(f"cannot read the trace {path}: {getattr(error, 'strerror', None) or error}") from error


def _event(line: str) -> Mapping[str, Any] | None:
    """Return the event of a line; `None` for a line that is none."""
    try:
        event = parse(line)
    except ValueError:
        return None
    return event if sound(event) else None


def supersede(path: str | Path) -> None:
    """Mark every run that a trace file holds as one that no longer counts.

    To be called before an attempt that takes their place writes to the same file.  A file that is not there, or is no
    trace, is left as it is.
    """
    about = {"event": "aborted", "at": round(time.time(), 3), "reason": "it was broken off and tried again"}
    with contextlib.suppress(TraceError):
        marks = [{"run": run.id, **about} for run in runs_in(path) if run.aborted is None]
        LineFile(path).append("".join([json.dumps(mark, separators=(",", ":")) + "\n" for mark in marks]))


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
