"""A meter's findings as tables: of a running meter or of one that was read back."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.accounting.ledger import Ledger
from rlm_loop.agents.past_run import ledger_of
from rlm_loop.messages import Usage
from rlm_loop.meter.exchange import MeteredCall
from rlm_loop.meter.tree import Branch, tree_of_session
from rlm_loop.traces.reader import read
from rlm_loop.traces.trace import TraceError

if TYPE_CHECKING:
    import pandas as pd

_ROWS = ["session", "node", "call", "turn", "cause", "detail", "origin_turn", "tokens", "resent", "cached", "written"]
_TIMES = [
    *("session", "number", "call", "node", "turn", "status", "model_seconds", "harness_seconds", "meter_seconds"),
    *("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens", "delivered", "error"),
]
_MAYBE = {name: "Int64" for name in _TIMES if name == "call" or name.endswith("_tokens")}


@dataclass(frozen=True)
class Total:
    """A session in sum.  `by_cause` are input tokens: all of them, and those that had been sent before.

    `harness_median` is the median time between the end of a reply and the next request, `None` before there were
    two; seconds, as all times.
    """

    session: str
    served: int
    refused: int
    usage: Usage
    by_cause: Mapping[str, tuple[int, int]]
    model_seconds: float
    harness_seconds: float
    harness_median: float | None
    meter_seconds: float


@dataclass(frozen=True)
class Figures:
    """Ledger and requests of each session, by name."""

    sessions: Mapping[str, tuple[Ledger, Sequence[MeteredCall]]]

    @property
    def calls(self) -> list[MeteredCall]:
        """Every request that was answered, refused ones included, session by session."""
        return [call for _, calls in self.sessions.values() for call in calls]

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows of `frame`."""
        for name, (ledger, _) in self.sessions.items():
            for call in list(ledger.calls):
                for row in call.rows:
                    yield {"session": name, "node": call.node, **{k: getattr(row, k) for k in _ROWS[2:]}}

    def frame(self) -> pd.DataFrame:
        """Return a row per call x cause x turn of origin; a call's `tokens` sum to the input tokens it was charged."""
        import pandas as pd

        return pd.DataFrame(list(self.rows()), columns=_ROWS)

    def times(self) -> pd.DataFrame:
        """Return one row per request: what it cost, and the time of the model, of the framework and of the meter."""
        import pandas as pd

        rows = [[getattr(call, name) for name in _TIMES] for call in self.calls]
        return pd.DataFrame(rows, columns=_TIMES).astype(_MAYBE)

    def trees(self) -> list[Branch]:
        """Return a tree for each session: conversation, cause, detail; with first request, each turn and total."""
        return [tree_of_session(name, ledger, calls) for name, (ledger, calls) in self.sessions.items()]

    def totals(self) -> list[Total]:
        """Return the sum of each session."""
        return [_total(name, ledger, calls) for name, (ledger, calls) in self.sessions.items()]


def _total(name: str, ledger: Ledger, calls: Sequence[MeteredCall]) -> Total:
    causes: dict[str, tuple[int, int]] = {}
    for row in ledger.rows:
        tokens, resent = causes.get(row.cause, (0, 0))
        causes[row.cause] = tokens + row.tokens, resent + row.resent
    between = [call.harness_seconds for call in calls if call.harness_seconds is not None]
    return Total(
        name,
        sum(call.call is not None for call in calls),
        sum(call.call is None for call in calls),
        ledger.usage,
        dict(sorted(causes.items(), key=lambda item: -item[1][0])),
        sum(call.model_seconds for call in calls),
        sum(between),
        statistics.median(between) if between else None,
        sum(call.meter_seconds for call in calls),
    )


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
        # by arrival: a refusal can be written down before the answer that was sent just before it
        calls = sorted((_call(event, name) for event in record.of("metered")), key=lambda call: call.number)
        sessions[name] = ledger_of(record), calls
    return Figures(sessions)


def _call(event: Mapping[str, Any], session: str) -> MeteredCall:
    known: dict[str, Any] = {name: value for name, value in event.items() if name in _FIELDS}
    known["session"] = session
    return MeteredCall(**known)
