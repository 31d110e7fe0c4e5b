"""A trace read back: its runs, their events, and every model call with its whole request."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rlm_loop.messages import Message, Prompt, Reply, Span, ToolCall, Usage
from rlm_loop.traces.lines import LineFile
from rlm_loop.traces.received import file_bytes, parse
from rlm_loop.traces.shapes import sound
from rlm_loop.traces.trace import SCHEMA, TraceError
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
        return next((str(e.get("reason", "")) for e in reversed(self.events) if e["event"] == "aborted"), None)

    @property
    def end(self) -> Mapping[str, Any] | None:
        """The root's `run_end` event; `None` if the run never came to its end."""
        ends = (e for e in reversed(self.events) if e["event"] == "run_end" and not e.get("depth", 0))
        return next((e for e in ends if e.get("node", "0") == "0"), None)  # one of several attempts has node 0.1

    @property
    def stop(self) -> str:
        return "no end" if self.end is None else str(self.end.get("stop"))

    def __str__(self) -> str:
        mark = "" if self.aborted is None else ", tried again"
        return f"{self.id} ({self.start.get('agent', '?')}, {self.start.get('task', '?')}: {self.stop}{mark})"

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
        asked: dict[Any, Prompt] = {}  # by call
        latest: dict[tuple[str, str], Prompt] = {}  # by caller and hash: requests of equal bytes may differ in causes
        for number, e in enumerate(self.events, 1):
            prompt = reply = None
            node = e.get("node", "0")
            with whole(e, number):
                match e["event"]:
                    case "message":
                        bodies[e["hash"]] = message_of(e["message"])
                    case "settings":
                        settings[e["hash"]] = e
                    case "request":
                        base = latest[node, e["base"]] if e["base"] else Prompt()
                        messages = (*base.messages[: e.get("kept")], *(bodies[h] for h in e["added"]))
                        rest = settings[e["settings"]]
                        prompt = Prompt(messages, tuple(rest["tools"]), tuple(rest["stop"]), rest["reply_schema"])
                        latest[node, e["digest"]] = asked[e.get("call_id")] = prompt
                    case "reply":
                        reply = reply_of(e["reply"])
                        prompt = asked.get(e["call_id"]) if "call_id" in e else latest.get((node, e["request"]))
                    case _:
                        pass
            if prompt is not None:
                yield e, prompt, reply


@contextlib.contextmanager
def whole(event: Mapping[str, Any], number: int | None = None) -> Generator[None]:
    """Raise `TraceError` where an event lacks what it must have, or has something else in its place.

    `number` is its place among those of the run, from 1; without it, its turn is named.
    """
    try:
        yield
    except (TypeError, AttributeError, ValueError, LookupError) as error:
        part = re.sub(r"\W", "", str(error))[:12] if isinstance(error, KeyError) else ""
        place = f"an event of turn {event.get('turn', 0)}" if number is None else f"event {number} of the run"
        what = f"{place} ({str(event['event'])[:20]}) {f'lacks {part}' if part else 'is damaged'}"
        raise TraceError(f"{what}: the trace was cut or edited; restore it from a copy") from None


def read(path: str | Path, *, run: Run = None) -> RunRecord:
    """Read one run of a trace file; `.gz` files are read compressed.

    `run` is the run's id, or its number from 0, negative from the end.  Without it, it is the last one that was begun
    and not marked as broken off.  A torn last line of a run is ignored.  Raises `TraceError` for a missing file, one
    that is not a trace, another schema, a damaged line in the middle of the run, and for a run that the file does not
    hold, with those that it does.
    """
    return _relied_on(_chosen(path, runs_in(path), run))


def read_all(path: str | Path) -> Iterator[RunRecord]:
    """Every run of a trace file, in the order in which they were begun, those that were broken off too."""
    return map(_relied_on, runs_in(path))


def _relied_on(record: RunRecord) -> RunRecord:
    if record.fault is not None:
        raise TraceError(record.fault)
    return record


def records_of(events: Iterable[Mapping[str, Any]]) -> tuple[RunRecord, ...]:
    """The runs of events that are at hand (`Trace.events`), in the order in which they were begun."""
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for event in events:
        runs.setdefault(str(event.get("run", "")), []).append(event)
    return tuple(RunRecord(tuple(run), number) for number, run in enumerate(runs.values()))


def runs_in(path: str | Path) -> list[RunRecord]:
    """The runs of a trace file, in the order in which they were begun.

    Lines of runs that were written at the same time may stand between each other.  Raises `TraceError` for a file that
    cannot be read or is no trace.
    """
    runs: list[list[Mapping[str, Any]]] = []
    known: dict[str, int] = {}  # the latest run of each id
    nobodys: list[int] = []  # lines that are no event and tell no run
    torn: dict[int, int] = {}  # by run, a line that is no event: its last one, where none follows
    passed: list[int] = []  # by run, how many of nobody's lines came before its latest event
    faults: dict[int, str] = {}
    for number, line, event in _events(path):
        if event is None:
            if named := _NAMED.match(line):
                torn.setdefault(known.get(named[1], -1), number)
            elif not _BEGINS.startswith(line[: len(_BEGINS)]):  # torn within the id, it was a run's last line
                nobodys.append(number)
        elif event["event"] == "run_start":
            known[str(event.get("run", ""))] = len(runs)
            if (schema := event.get("schema", 0)) != SCHEMA:
                faults[len(runs)] = f"{path} has schema {schema}; this version of rlm-loop reads {SCHEMA}"
            runs.append([event])
            passed.append(len(nobodys))
        elif (run := known.get(str(event.get("run", "")))) is None:
            raise TraceError(f"{path}:{number} is not a trace of rlm_loop: the first event is not run_start")
        else:
            runs[run].append(event)
            if event["event"] == "aborted":  # which another writes
                continue
            if run in torn or passed[run] < len(nobodys):
                place = torn[run] if run in torn else nobodys[passed[run]]
                faults.setdefault(run, f"{path}:{place} is damaged in the middle of the file; restore it from a copy")
            passed[run] = len(nobodys)
    if nobodys and not runs:
        raise TraceError(f"{path} is not a trace of rlm_loop: no line of it is an event")
    return [RunRecord(tuple(events), run, faults.get(run)) for run, events in enumerate(runs)]


def _chosen(path: str | Path, runs: Sequence[RunRecord], run: Run) -> RunRecord:
    """The run that is meant.  Raises `TraceError` with those that there are."""
    number: int | None = None
    if run is None or run == "":
        number = next((r.number for r in reversed(runs) if r.aborted is None), len(runs) - 1)
    elif named := [r.number for r in runs if r.id == run]:
        number = named[-1]  # there are several where a file was put together from copies
    elif re.fullmatch(r"-?\d+", str(run)):
        number = int(run)
    if number is not None and -len(runs) <= number < len(runs):
        return runs[number]
    listed = f": {'; '.join(map(str, runs))}" if runs else ""
    many = f"{len(runs)} run{'' if len(runs) == 1 else 's'}"
    raise TraceError(f"{path} holds {many}{listed}; there is no run {number if run is None else run}")


def supersede(path: str | Path) -> list[str]:
    """Mark every run that a trace file holds as one that no longer counts; returns the ids of those marked now.

    To be called before an attempt that takes their place writes to the same file.  A file that is not there, or is no
    trace, is left as it is.
    """
    with contextlib.suppress(TraceError):
        marked = [run.id for run in runs_in(path) if run.aborted is None]
        if marked:
            about = {"event": "aborted", "at": round(time.time(), 3), "reason": "it was broken off and tried again"}
            with contextlib.closing(LineFile(path)) as file:
                file.append("".join(json.dumps({"run": id, **about}, separators=(",", ":")) + "\n" for id in marked))
        return marked
    return []


def _events(path: str | Path) -> Iterator[tuple[int, str, dict[str, Any] | None]]:
    """Number, text and event of each line; `None` for a line that is no event."""
    try:
        text = file_bytes(path).decode("utf-8", "replace")
    except (OSError, ValueError) as error:  # a name that holds a zero byte is a ValueError
        raise TraceError(f"cannot read the trace {path}: {getattr(error, 'strerror', None) or error}") from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip("\0\r\t "):  # zeros are what a power failure leaves of what was not written yet
            continue
        try:
            event = parse(line)
        except ValueError:
            event = None
        yield number, line, event if sound(event) else None


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
