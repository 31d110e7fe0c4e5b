"""What a meter recorded, read back from its traces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from rlm_loop.agents.past_run import ledger_of
from rlm_loop.meter.exchange import MeteredCall
from rlm_loop.meter.figures import Figures
from rlm_loop.traces.reader import read
from rlm_loop.traces.trace import TraceError

_FIELDS = {field.name for field in fields(MeteredCall)}


def read_meter(path: str | Path) -> Figures:
    """The figures of the traces that a meter wrote: a folder of them, or one file.

    Of a file that several runs of the meter were appended to, the last one counts.  Raises `TraceError` for a path
    without traces.
    """
    place = Path(path)
    files = sorted(place.glob("*.jsonl")) if place.is_dir() else [place]
    if not files:
        raise TraceError(f"{place} holds no traces; name the folder that the meter wrote to")
    sessions: dict[str, Any] = {}
    for file in files:
        record = read(file)
        name = str(record.start.get("settings", {}).get("session", file.stem))
        calls = [_call(event, name) for event in record.of("metered")]
        sessions[name] = ledger_of(record), calls
    return Figures(sessions)


def _call(event: Mapping[str, Any], session: str) -> MeteredCall:
    known: dict[str, Any] = {name: value for name, value in event.items() if name in _FIELDS}
    known |= {"session": session, "ignored": tuple(known.get("ignored", ()))}
    return MeteredCall(**known)
