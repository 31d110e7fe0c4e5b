"""Packed results, small enough to commit; traces, loose or packed, read and checked against the rows."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from rlm_loop.agents.past_run import ledger_of
from rlm_loop.study.errors import StudyError
from rlm_loop.study.store.reading import FAIRNESS, LOCK, RESULTS, SCHEMA, lock_of, read_rows
from rlm_loop.study.store.rows import Row, finished
from rlm_loop.traces.reader import Run, RunRecord, read
from rlm_loop.traces.received import most_of
from rlm_loop.traces.trace import TraceError

#: One compressed file a study: a tenth of the size of the traces themselves.
TRACES = "traces.tar.xz"


def export(folder: str | Path, target: str | Path) -> list[Path]:
    """Write a study's lock file, fairness check, rows (`results.jsonl.gz`) and traces (`traces.tar.xz`) to `target`.

    Only the last row and the trace of each episode are kept.  Names are sorted and times zero, so the same results
    give the same bytes.  Returns the files written; raises `StudyError` where there is nothing to export.
    """
    lock, rows = lock_of(folder), read_rows(folder)
    lines = [{"schema": SCHEMA, "study": lock["name"]}, *rows]
    packed = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    files = {
        LOCK: (json.dumps(lock, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode(),
        f"{RESULTS}.gz": gzip.compress(packed.encode(), 9, mtime=0),
        TRACES: _pack(Path(folder), sorted({r["trace"] for r in rows})),
    }
    if (signed := Path(folder) / FAIRNESS).is_file():
        files[FAIRNESS] = signed.read_bytes()
    try:
        Path(target).mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (Path(target) / name).write_bytes(data)
    except OSError as error:
        raise StudyError(f"cannot write to {target}: {error.strerror}; choose another folder") from error
    return [Path(target) / name for name in files]


def _pack(folder: Path, names: list[str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", format=tarfile.USTAR_FORMAT) as tar:
        for name in names:
            path = folder / name
            if not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
                continue  # an episode that crashed before its first event; a link of a stranger's that leads out
            member = tarfile.TarInfo(name)
            member.size = path.stat().st_size
            with path.open("rb") as file:
                tar.addfile(member, file)
    return packed.getvalue()


def packed_traces(folder: str | Path) -> Mapping[str, bytes]:
    """Return the traces of a folder's archive by name, none where it has none; the last archives stay in memory.

    Raises `TraceError` where it cannot be read, or holds more than its size can (`most_of`).
    """
    archive = Path(folder) / TRACES
    if not archive.is_file():
        return {}
    try:
        return _unpacked(str(archive), archive.stat().st_mtime_ns)
    except (OSError, tarfile.TarError, EOFError, lzma.LZMAError) as error:
        raise TraceError(f"cannot read the archive {archive}: {error}") from error


@lru_cache(maxsize=2)
def _unpacked(archive: str, changed: int) -> Mapping[str, bytes]:
    """Read an archive once for each change of the file (time in nanoseconds)."""
    found: dict[str, bytes] = {}
    left = most = most_of(Path(archive).stat().st_size)
    with tarfile.open(archive, "r:xz") as tar:
        for member in tar:
            left -= member.size
            if left < 0:
                raise TraceError(f"the archive {archive} holds more than {most:,} bytes")
            if member.isfile() and (file := tar.extractfile(member)) is not None:
                found[member.name] = file.read()
    return found


def read_trace(folder: str | Path, name: str, *, run: Run = None) -> RunRecord:
    """A run of the trace `name` of a study's folder, loose or packed; without `run` the one that counts.

    Raises `TraceError` where there is none.
    """
    path = Path(folder) / name
    if path.is_file() or (trace := packed_traces(folder).get(name)) is None:
        return read(path, run=run)
    with tempfile.TemporaryDirectory() as scratch:
        unpacked = Path(scratch) / path.name
        unpacked.write_bytes(trace)
        return read(unpacked, run=run)


def trace_of(folder: str | Path, row: Row) -> RunRecord:
    """The run of a row's attempt, loose or packed.  Raises `TraceError` where it is not there or damaged."""
    return read_trace(folder, row["trace"], run=row.get("trace_run") or None)


def finished_rows(folder: str | Path) -> list[Row]:
    """The rows of a folder's episodes that ran to their end.  Raises `StudyError` where it holds no study."""
    lock_of(folder)
    return list(filter(finished, read_rows(folder)))


def verify_traces(folder: str | Path) -> list[str]:
    """Return a line for each disagreement between the finished rows of a folder and their traces; empty if all fit.

    Checked are: the trace is there and came to its end; the ledger rows of each call sum to the prompt tokens that
    the call reported, and an exact count is that number; the number of calls, of turns, and the tokens in and out
    are those of the row.
    """
    problems: list[str] = []
    for row in finished_rows(folder):
        try:
            found = list(_problems(row, trace_of(folder, row)))
        except TraceError as error:
            found = [str(error)]
        problems += [f"{row['trace']}: {problem}" for problem in found]
    return problems


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
    turns = len({call.turn for call in calls if not call.depth})
    if turns > row["steps"]:
        # a reply may have cost tokens without its turn coming to an end, but not the other way round
        yield f"{turns} turns have replies, the row says {row['steps']}"
    sums: dict[str, Any] = {"calls": len(calls)}
    for field in ("input_tokens", "output_tokens"):
        figures: list[int | None] = [getattr(call.usage, field) for call in calls]
        sums[field] = row[field] if None in figures or row[field] is None else sum(f or 0 for f in figures)
    yield from (
        f"{name}: the row says {row[name]}, the trace {there}" for name, there in sums.items() if row[name] != there
    )
