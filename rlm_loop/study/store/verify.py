"""Checking a study's rows against its traces: the numbers of a table must follow from what is on record."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlm_loop.agents.past_run import ledger_of
from rlm_loop.study.errors import StudyError, no_study
from rlm_loop.study.store.archive import read_packed
from rlm_loop.study.store.reading import read_lock, read_rows
from rlm_loop.study.store.rows import Row, finished
from rlm_loop.traces.reader import RunRecord, read
from rlm_loop.traces.trace import TraceError


def verify_traces(folder: str | Path) -> list[str]:
    """One line for each disagreement between the finished rows of a folder and their traces; empty if all fit.

    Checked are: the trace is there and came to its end; the ledger rows of each call sum to the prompt tokens that
    the call reported, and an exact count is that number; the number of calls, of turns, and the tokens in and out
    are those of the row.
    """
    problems: list[str] = []
    for row, path in traces_of(folder):
        try:
            found = list(_problems(row, read(path, run=row.get("trace_run") or None)))
        except TraceError as error:
            found = [str(error)]
        problems += [f"{row['trace']}: {problem}" for problem in found]
    return problems


def traces_of(folder: str | Path) -> Iterator[tuple[Row, Path]]:
    """The finished rows of a folder, each with the file of its trace, there until the next is asked for.

    Raises `StudyError` for rows that cannot be read, and `TraceError` for an archive that cannot.
    """
    if read_lock(folder) is None:
        raise StudyError(no_study(folder))
    packed = read_packed(folder)
    with tempfile.TemporaryDirectory() as scratch:
        for row in filter(finished, read_rows(folder)):
            path = Path(folder) / row["trace"]
            if not path.is_file() and row["trace"] in packed:
                path = Path(scratch) / "trace.jsonl"
                path.write_bytes(packed[row["trace"]])
            yield row, path


def _problems(row: Row, run: RunRecord) -> Iterator[str]:
    if run.end is None:
        yield "the run has no end"
    calls = ledger_of(run).calls
    for call in calls:
        reported, charged = call.usage.input_tokens, sum(r.tokens for r in call.rows)
        if reported is not None and charged != reported:
            yield f"call {call.call}: the ledger rows sum to {charged}, the model reported {reported}"
        if call.exact and call.counted not in (None, reported):
            yield f"call {call.call}: {call.counted} tokens were counted, the model reported {reported}"
    yield from _differ("calls", row["calls"], len(calls))
    turns = len({call.turn for call in calls if not call.depth})
    if turns > row["steps"]:
        # a reply may have cost tokens without its turn coming to an end, but not the other way round
        yield f"{turns} turns have replies, the row says {row['steps']}"
    for field in ("input_tokens", "output_tokens"):
        figures: list[int | None] = [getattr(call.usage, field) for call in calls]
        if None not in figures and row[field] is not None:
            yield from _differ(field, row[field], sum(f for f in figures if f is not None))


def _differ(what: str, row: Any, trace: Any) -> Iterator[str]:
    if row != trace:
        yield f"{what}: the row says {row}, the trace {trace}"
