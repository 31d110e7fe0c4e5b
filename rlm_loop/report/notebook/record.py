"""A trace in a notebook: what the run was, how it ended, and its turns in a line each, from the events alone.

`agents.past_run.outcome_of(record)` gives the whole run back, `report.run.run_page(path)` a page to read it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rlm_loop.agents.past_run import turns_of
from rlm_loop.outcome import Turn
from rlm_loop.report.notebook.formatting import action_text, clipped
from rlm_loop.report.notebook.html import view
from rlm_loop.traces.reader import RunRecord

Event = Mapping[str, Any]
#: Turns that are shown; of more than these the number is told.
TURNS = 50
_HINT = "outcome_of(record) in rlm_loop.agents.past_run gives the run back; rlm-loop trace show FILE shows each step"


def record_line(events: Sequence[Event]) -> str:
    """One run of a trace in a line."""
    start, end = _ends(events)
    stop = end.get("stop", "no end: killed, or still going on") if end is not None else "no end"
    return f"{start.get('agent', '?')} with {start.get('model', '?')}: {stop}, {len(_turns(events))} turns"


def record_html(events: Sequence[Event]) -> str:
    """One run of a trace as HTML with no script; what a model or a tool wrote is escaped."""
    start, end = _ends(events)
    stop, reason = _stop(end)
    turns = turns_of(RunRecord(tuple(events)))
    return view(
        "record",
        stop=stop,
        reason=clipped(reason),
        question=clipped(str(start.get("question", "")), 1_000),
        answer="" if end is None else clipped(_value(end.get("answer"))),
        facts=" · ".join(_facts(events)),
        turns=[(_head(turn), list(_texts(turn))) for turn in turns[:TURNS]],
        left_out=f"and {len(turns) - TURNS} more turns" if len(turns) > TURNS else "",
        hint=_HINT,
    )


def trace_html(path: str | None, events: Sequence[Event]) -> str:
    """A trace that is being written: where it goes, or its last run."""
    starts = [event for event in events if event["event"] == "run_start"]
    if path is None and starts:
        return record_html([event for event in events if event.get("run") == starts[-1].get("run")])
    return view("trace", "an empty trace" if path is None else "trace written to", path)


def _ends(events: Sequence[Event]) -> tuple[Event, Event | None]:
    start: Event = events[0] if events else {}
    end = (e for e in reversed(events) if e["event"] == "run_end" and e.get("node", "0") == "0" and not e.get("depth"))
    return start, next(end, None)


def _turns(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event["event"] == "turn" and not event.get("depth")]


def _stop(end: Event | None) -> tuple[str, str]:
    if end is None:
        return "no end", "the run was killed, or is still going on"
    return str(end.get("stop", "")), str(end.get("reason", ""))


def _facts(events: Sequence[Event]) -> list[str]:
    start, end = _ends(events)
    usage: Mapping[str, Any] = (end or {}).get("usage") or {}
    tokens = [
        f"{usage[k]:,} {what}" for k, what in (("input_tokens", "tokens in"), ("output_tokens", "out")) if usage.get(k)
    ]
    kinds = Counter(str(event["event"]) for event in events)
    subcalls = kinds["subcall_start"]
    return [
        str(start.get("agent", "?")),
        str(start.get("model", "?")),
        f"{len(_turns(events))} turns",
        *tokens,
        *([f"{end['seconds']:.1f} s"] if end is not None and "seconds" in end else []),
        *([f"{subcalls} sub-calls"] if subcalls else []),
        f"{len(events)} events",
    ]


def _head(turn: Turn) -> str:
    labels = ", ".join(dict.fromkeys(action_text(action)[0] for action in turn.actions))
    failed = [str(o.failure.kind) for o in turn.observations if o.failure is not None]
    mark = f", failed: {', '.join(failed)}" if failed else ""
    return f"turn {turn.index}: {labels}{mark}, {turn.seconds:.1f} s"


def _texts(turn: Turn) -> Iterator[str]:
    for action, observation in zip(turn.actions, turn.observations, strict=True):
        yield clipped("\n".join(filter(None, [action_text(action)[1], observation.text])))


def _value(stored: Any) -> str:
    if isinstance(stored, Mapping) and set(stored) == {"repr"}:
        return str(stored["repr"])
    return stored if isinstance(stored, str) else "" if stored is None else repr(stored)
