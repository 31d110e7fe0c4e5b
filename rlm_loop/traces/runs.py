"""Runs of a trace file: their lines, the run that a caller names, and the one that counts."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from rlm_loop.traces.file import LineFile
from rlm_loop.traces.received import file_bytes, parse
from rlm_loop.traces.shapes import sound
from rlm_loop.traces.trace import SCHEMA, TraceError

TRIED_AGAIN = "it was broken off and tried again"
#: A run of a file: its id or the beginning of it, its number, or the one that counts (`None`).
Run = int | str | None

Events = TypeVar("Events", bound=Sequence[Mapping[str, Any]])
_NAMED = '{"run":"'  # how a line begins that names its run
_TORN = re.compile(r'\{"run":"([^"\\]+)"')
_LISTED = 12


class RunEvents(Generic[Events]):
    """Events of one run, `run_start` first, and its number in the file, from 0."""

    events: Events
    number: int

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


@dataclass
class RunLines(RunEvents[list[Mapping[str, Any]]]):
    """The lines of one run; `fault` says why they cannot be relied on (`None`: they can)."""

    events: list[Mapping[str, Any]]
    number: int
    fault: str | None
    first: int
    last: int
    """The numbers of its first and latest line."""


def runs_in(path: str | Path) -> list[RunLines]:
    """The runs of a trace file, in the order in which they were begun.

    Lines of runs that were written at the same time may stand between each other.  Raises `TraceError` for a file that
    cannot be read or is no trace.
    """
    runs: list[RunLines] = []
    known: dict[str, RunLines] = {}
    damaged: list[tuple[int, str]] = []
    for number, line, event in _events(path):
        if event is None:
            damaged.append((number, line))
        elif event["event"] == "run_start":
            run = RunLines([event], len(runs), _foreign(path, event), number, number)
            runs.append(run)
            known[run.id] = run
        elif (run := known.get(str(event.get("run", "")))) is None:
            raise TraceError(f"{path}:{number} is not a trace of rlm_loop: the first event is not run_start")
        else:
            run.events.append(event)
            if event["event"] != "aborted":  # which another writes
                run.last = number
    if not runs and any(not _is_torn(line) for _, line in damaged):
        raise TraceError(
            f"{path} is not a trace of rlm_loop: no line of it is an event; name a file that `trace=` wrote"
        )
    for number, line in damaged:
        _blame(path, number, line, runs)
    return runs


def chosen(path: str | Path, runs: Sequence[RunEvents[Any]], run: Run) -> int:
    """The place of the run that is meant.  Raises `TraceError` with those that there are."""
    number: int | None = None
    if run is None or run == "":
        number = next((r.number for r in reversed(runs) if r.aborted is None), len(runs) - 1)
    elif isinstance(run, int):
        number = run
    elif exact := [r.number for r in runs if r.id == run]:
        number = exact[-1]  # there are several where a file was put together from copies
    elif len(begun := [r.number for r in runs if r.id.startswith(run)]) == 1:
        number = begun[0]
    elif re.fullmatch(r"-?\d+", run):
        number = int(run)
    if number is not None and -len(runs) <= number < len(runs):
        return number % len(runs)
    listed = "; ".join(map(str, runs[-_LISTED:]))
    listed = f", the last of them {listed}" if len(runs) > _LISTED else f": {listed}" if runs else ""
    many = f"{len(runs)} run{'' if len(runs) == 1 else 's'}"
    raise TraceError(f"{path} holds {many}{listed}; there is no run {number if run is None else run}")


def supersede(path: str | Path, reason: str = TRIED_AGAIN, *, clock: Callable[[], float] = time.time) -> list[str]:
    """Mark every run that a trace file holds as one that no longer counts; returns the ids of those marked now.

    To be called before an attempt that takes their place writes to the same file.  A file that is not there, or is no
    trace, is left as it is.
    """
    with contextlib.suppress(TraceError):
        marked = [run.id for run in runs_in(path) if run.aborted is None]
        if marked:
            lines = [{"run": name, "event": "aborted", "at": round(clock(), 3), "reason": reason} for name in marked]
            with contextlib.closing(LineFile(path)) as file:
                file.append("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
        return marked
    return []


def owner(line: str) -> str | None:
    """The id of the run that a torn line belongs to, as far as it can be read."""
    found = _TORN.match(line)
    return None if found is None else found[1]


def _is_torn(line: str) -> bool:
    return line.startswith(_NAMED) or _NAMED.startswith(line)


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


def _foreign(path: str | Path, start: Mapping[str, Any]) -> str | None:
    schema = start.get("schema", 0)
    if schema == SCHEMA:
        return None
    hint = "upgrade rlm-loop" if isinstance(schema, int) and schema > SCHEMA else "record it again"
    return f"{path} has schema {schema}; this version reads {SCHEMA}: {hint}"


def _blame(path: str | Path, number: int, line: str, runs: Sequence[RunLines]) -> None:
    """Forgive a line that cannot be read to a writer who was killed in it, and wrote nothing more."""
    suspects = [r for r in runs if r.first < number]
    if (name := owner(line)) is not None:
        suspects = [r for r in suspects if r.id == name]
    elif _is_torn(line) and any(r.last < number and r.end is None for r in suspects):  # torn within the id
        return
    for run in suspects:
        if run.last > number and run.fault is None:
            run.fault = f"{path}:{number} is damaged in the middle of the file; restore it from a copy"
