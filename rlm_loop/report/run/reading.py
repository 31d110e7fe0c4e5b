"""The runs of a trace file as far as they can be read: torn, damaged and of other versions too.

`traces.reader.read` refuses a damaged trace, since programs compute with what it returns.  A person who reads a page
wants to see what is there, with a note on what is missing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from rlm_loop.traces.reader import RunRecord, owner
from rlm_loop.traces.received import LARGEST, packed_bytes, parse, unpacked_part
from rlm_loop.traces.redact import redactor
from rlm_loop.traces.shapes import sound
from rlm_loop.traces.trace import SCHEMA, TraceError

#: Levels of sub-calls that the page can draw.
_DEEPEST = 40
#: Lines named in one note; the others are counted.
_NAMED = 5

#: What reading an event of unknown shape may raise.
UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, IndexError, TraceError)


def mapping(value: Any) -> Mapping[str, Any]:
    """A value that should be a JSON object; an empty one where it is something else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


@dataclass(frozen=True)
class RunInFile:
    """A run, notes on how much of it could be read, and its events of unknown shape."""

    record: RunRecord
    notes: tuple[str, ...] = ()
    strange: tuple[Any, ...] = ()


def found_in(path: str | Path) -> tuple[RunInFile, ...]:
    """All runs of a trace file in order, at least one.

    Raises `TraceError` for a file that cannot be opened and for one without a single event.
    """
    try:
        raw = packed_bytes(path)
    except OSError as error:
        raise TraceError(f"cannot read the trace {path}: {error.strerror}; name a .jsonl or .jsonl.gz file") from error
    return found_in_bytes(raw, str(path))


def found_in_bytes(raw: bytes, path: str) -> tuple[RunInFile, ...]:
    """The same for the bytes of a trace file; `path` is for messages."""
    try:
        text, damage = unpacked_part(raw, LARGEST) if raw[:2] == b"\x1f\x8b" else (raw, "")
    except OSError as error:
        raise TraceError(f"cannot read the trace {path}: {error.strerror}") from error
    runs: list[_Run] = []
    known: dict[str, _Run] = {}
    for number, line, event in _lines(text.decode("utf-8", "replace")):
        name = owner(line) if event is None else str(event.get("run", ""))
        run = known.get(name or "", runs[-1] if runs and event is None else None)
        if event is None:
            if run is not None:  # what precedes the first event belongs to no run
                run.bad.append(number)
            continue
        begins = event["event"] == "run_start"
        if run is None or begins:
            run = _Run(event if begins else {"event": "run_start", "run": name}, len(runs), number)
            runs.append(run)
            known[name or ""] = run
        if not begins:
            run.take(event, number)
    if not runs:
        raise TraceError(f"{path} holds no event of a run; name a trace that rlm_loop wrote")
    if damage:
        runs[-1].notes.append("The compressed file is cut off: what follows is lost.")
    return tuple(run.found() for run in runs)


class _Run:
    def __init__(self, start: Mapping[str, Any], number: int, line: int) -> None:
        self.events, self.strange = [start], list[Any]()
        self.notes, self.bad = list[str](), list[int]()
        self.number, self.last = number, line

    def take(self, event: Mapping[str, Any], line: int) -> None:
        if event["event"] != "aborted":  # which another writes
            self.last = line
        shown = sound(event, complete=True) and str(event.get("node", "")).count(".") <= _DEEPEST
        (self.events if shown else self.strange).append(event)

    def found(self) -> RunInFile:
        schema, notes = self.events[0].get("schema"), list(self.notes)
        if set(self.events[0]) == {"event", "run"}:
            notes.append("The trace does not begin with run_start: its beginning is missing.")
        elif schema != SCHEMA:
            notes.append(f"The trace has schema {schema!r}, of which this version ({SCHEMA}) shows what it can read.")
        if self.bad:
            lines = ", ".join(map(str, self.bad[:_NAMED]))
            more = f" and {len(self.bad) - _NAMED} more" if len(self.bad) > _NAMED else ""
            torn = ", the last one torn" if self.bad[-1] > self.last else ""
            notes.append(f"Damaged lines, left out: {lines}{more}{torn}.")
        if self.strange:
            notes.append(f"Events of an unknown shape: {len(self.strange)}, shown at the end as they are.")
        record = RunRecord(tuple(self.events), self.number)
        if record.aborted is not None:
            notes.append(f"This run does not count: {record.aborted or 'it was broken off and tried again'}.")
        return RunInFile(record, tuple(notes), tuple(self.strange))


def _lines(text: str) -> Iterator[tuple[int, str, dict[str, Any] | None]]:
    """Number, text and event of each line; `None` for what is no event."""
    hidden = redactor(os.environ)
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                event = hidden.value(parse(line))  # older traces were written by older redactors
            except ValueError:
                event = None
            yield number, line, event if isinstance(mapping(event).get("event"), str) else None
