"""Which runs a trace file holds, which lines are whose, which one is meant, and which no longer counts."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlm_loop.traces.file import LineFile
from rlm_loop.traces.received import file_bytes, parse
from rlm_loop.traces.shapes import sound
from rlm_loop.traces.trace import SCHEMA, TraceError

TRIED_AGAIN = "it was broken off and tried again"
#: Which run of a file is meant: its id or the beginning of it, its number, or the one that counts (`None`).
Run = int | str | None

#: How a line begins that names its run.
_NAMED = '{"run":"'
_TORN = re.compile(r'\{"run":"([^"\\]+)"')
_LISTED = 12


@dataclass
class RunLines:
    """The lines of one run.  `fault` says why they cannot be relied on (`None`: they can)."""

    number: int
    id: str
    events: list[Mapping[str, Any]] = field(default_factory=list["Mapping[str, Any]"])
    fault: str | None = None
    first: int = 0
    last: int = 0
    """The numbers of its first and latest line."""

    @property
    def aborted(self) -> bool:
        return any(e["event"] == "aborted" for e in self.events)

    @property
    def ended(self) -> bool:
        return any(e["event"] == "run_end" and e.get("node", "0") == "0" and not e.get("depth") for e in self.events)

    def __str__(self) -> str:
        start = self.events[0]
        end = next((e for e in reversed(self.events) if e["event"] == "run_end" and not e.get("depth")), None)
        stop = "no end" if end is None else str(end.get("stop"))
        mark = ", tried again" if self.aborted else ""
        return f"{self.id} ({start.get('agent', '?')}, {start.get('task', '?')}: {stop}{mark})"


def runs_in(path: str | Path) -> list[RunLines]:
    """The runs of a trace file, in the order in which they were begun.

    Lines of runs that were written at the same time may stand between each other.  Raises `TraceError` for a file that
    cannot be read or is no trace.
    """
    runs: list[RunLines] = []
    known: dict[str, RunLines] = {}
    damaged: list[tuple[int, str]] = []
    for number, line, event in _events(text_of(path)):
        if event is None:
            damaged.append((number, line))
            continue
        if event["event"] == "run_start":
            run = RunLines(len(runs), str(event.get("run", "")), [event], _foreign(path, event), number, number)
            runs.append(run)
            known[run.id] = run
        elif (found := known.get(str(event.get("run", "")))) is None:
            raise TraceError(f"{path}:{number} is not a trace of rlm_loop: the first event is not run_start")
        else:
            found.events.append(event)
            if event["event"] != "aborted":  # which another writes
                found.last = number
    for number, line in damaged:
        _blame(path, number, line, runs)
    return runs


def chosen(path: str | Path, runs: Sequence[RunLines], run: Run) -> int:
    """The place of the run that is meant.  Raises `TraceError` with those that there are."""
    if run is None or run == "":
        return (
            next((r.number for r in reversed(runs) if not r.aborted), len(runs) - 1) if runs else _none(path, runs, -1)
        )
    if isinstance(run, str):
        if exact := [r.number for r in runs if r.id == run]:
            return exact[-1]  # there are several where a file was put together from copies
        begin = [r.number for r in runs if r.id.startswith(run)]
        if len(begin) == 1:
            return begin[0]
        if not re.fullmatch(r"-?\d+", run):
            return _none(path, runs, run)
        run = int(run)
    return run % len(runs) if -len(runs) <= run < len(runs) else _none(path, runs, run)


def _none(path: str | Path, runs: Sequence[RunLines], run: int | str) -> int:
    there = "; ".join(map(str, runs[-_LISTED:]))
    there = f": {there}" if len(runs) <= _LISTED else f", the last of them {there}"
    many = f"{len(runs)} run{'' if len(runs) == 1 else 's'}"
    raise TraceError(f"{path} holds {many if runs else '0 runs'}{there if runs else ''}; there is no run {run}")


def supersede(path: str | Path, reason: str = TRIED_AGAIN, *, clock: Callable[[], float] = time.time) -> list[str]:
    """Mark every run that a trace file holds as one that no longer counts; returns the ids of those marked now.

    To be called before an attempt that takes their place writes to the same file.  A file that is not there, or is no
    trace, is left as it is.
    """
    if not Path(path).is_file():
        return []
    with contextlib.suppress(TraceError):
        marked = [run for run in runs_in(path) if not run.aborted]
        if marked:
            lines = [{"run": run.id, "event": "aborted", "at": round(clock(), 3), "reason": reason} for run in marked]
            file = LineFile(path)
            try:
                file.append("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
            finally:
                file.close()
        return [run.id for run in marked]
    return []


def text_of(path: str | Path) -> str:
    """The text of a trace file, compressed or not."""
    try:
        return file_bytes(path).decode("utf-8", "replace")
    except (OSError, ValueError) as error:  # a name that holds a zero byte is a ValueError
        raise TraceError(f"cannot read the trace {path}: {getattr(error, 'strerror', None) or error}") from error


def owner(line: str) -> str | None:
    """The id of the run that a torn line belongs to, as far as it can be read."""
    found = _TORN.match(line)
    return None if found is None else found[1]


def _events(text: str) -> Iterator[tuple[int, str, dict[str, Any] | None]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip("\0\r\t "):  # zeros are what a power failure leaves of what was not written yet
            continue
        try:
            event = parse(line)
        except ValueError:
            event = None
        yield number, line, event if sound(event) else None


def _foreign(path: str | Path, start: Mapping[str, Any]) -> str | None:
    found = start.get("schema", 0)
    if found == SCHEMA:
        return None
    hint = "upgrade rlm-loop" if isinstance(found, int) and found > SCHEMA else "record it again"
    return f"{path} has schema {found}; this version reads {SCHEMA}: {hint}"


def _blame(path: str | Path, number: int, line: str, runs: Sequence[RunLines]) -> None:
    """A line that cannot be read is forgiven to a writer who was killed in it, and wrote nothing more."""
    suspects = [r for r in runs if r.first < number]
    if (name := owner(line)) is not None:
        suspects = [r for r in suspects if r.id == name]
    elif (line.startswith(_NAMED) or _NAMED.startswith(line)) and any(
        r.last < number and not r.ended for r in suspects
    ):  # torn within the id
        return
    for run in suspects:
        if run.last > number and run.fault is None:
            run.fault = f"{path}:{number} is damaged in the middle of the file; restore it from a copy"
