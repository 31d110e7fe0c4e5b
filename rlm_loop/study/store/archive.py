"""Results small enough to commit: rows and traces packed, the same input giving the same bytes."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from rlm_loop.study.errors import StudyError, no_study
from rlm_loop.study.store.reading import FAIRNESS, LOCK, RESULTS, SCHEMA, read_lock, read_rows
from rlm_loop.traces.reader import Run, RunRecord, read
from rlm_loop.traces.trace import TraceError

#: One compressed file a study: a tenth of the size of the traces themselves.
TRACES = "traces.tar.xz"
#: Bytes of all traces of an archive, unpacked.
_LARGEST = 2_000_000_000


def export(folder: str | Path, target: str | Path, *, traces: bool = True) -> list[Path]:
    """Write a study's lock file, fairness check, rows (`results.jsonl.gz`) and traces (`traces.tar.xz`) to `target`.

    Only the last row and the trace of each episode are kept.  Names are sorted and times zero, so the same results
    give the same bytes.  Returns the files written; raises `StudyError` where there is nothing to export.
    """
    lock, rows = read_lock(folder), read_rows(folder)
    if lock is None:
        raise StudyError(no_study(folder))
    if not rows:
        raise StudyError(f"{folder} holds no results yet; run the study first")
    there = Path(target)
    head = json.dumps({"schema": SCHEMA, "study": lock["name"]}, separators=(",", ":"))
    lines = [head, *(json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in rows)]
    try:
        there.mkdir(parents=True, exist_ok=True)
        files = [there / LOCK, there / f"{RESULTS}.gz"]
        files[0].write_text(json.dumps(lock, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
        files[1].write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), 9, mtime=0))
        if (signed := Path(folder) / FAIRNESS).is_file():
            files.append(there / FAIRNESS)
            files[-1].write_bytes(signed.read_bytes())
        if traces:
            files.append(there / TRACES)
            files[-1].write_bytes(_pack(Path(folder), sorted({r["trace"] for r in rows})))
    except OSError as error:
        raise StudyError(f"cannot write to {target}: {error.strerror}; choose another folder") from error
    return files


def _pack(folder: Path, names: list[str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", format=tarfile.USTAR_FORMAT) as tar:
        for name in names:
            path = folder / name
            if not path.is_file():  # an episode that crashed before its first event
                continue
            member = tarfile.TarInfo(name)
            member.size = path.stat().st_size
            member.mode = 0o644
            with path.open("rb") as file:
                tar.addfile(member, file)
    return packed.getvalue()


def archive_of(folder: str | Path) -> Path | None:
    """The archive of a folder's traces, if it has one."""
    path = Path(folder) / TRACES
    return path if path.is_file() else None


def packed_traces(archive: str | Path) -> Mapping[str, bytes]:
    """Return the traces of an archive by name; the last archives stay unpacked in memory.

    Raises `TraceError` where it cannot be read, or would take more than 2 GB.
    """
    try:
        state = Path(archive).stat()
        return _unpacked(str(archive), state.st_mtime_ns, state.st_size)
    except (OSError, tarfile.TarError, EOFError, lzma.LZMAError) as error:
        raise TraceError(f"cannot read the archive {archive}: {getattr(error, 'strerror', None) or error}") from error


@lru_cache(maxsize=2)
def _unpacked(archive: str, changed: int, size: int) -> Mapping[str, bytes]:
    """Read an archive once for each change of the file (time in nanoseconds, size in bytes)."""
    found: dict[str, bytes] = {}
    left = _LARGEST
    with tarfile.open(archive, "r:xz") as tar:
        for member in tar:
            left -= member.size
            if left < 0:
                raise TraceError(f"the archive {archive} holds more than {_LARGEST:,} bytes")
            if member.isfile() and (file := tar.extractfile(member)) is not None:
                found[member.name] = file.read()
    return MappingProxyType(found)


def read_trace(folder: str | Path, name: str, *, run: Run = None) -> RunRecord:
    """A run of the trace `name` of a study's folder, loose or packed; without `run` the one that counts.

    Raises `TraceError` where there is none.
    """
    loose, archive = Path(folder) / name, archive_of(folder)
    if loose.is_file() or archive is None:
        return read(loose, run=run)
    trace = packed_traces(archive).get(name)
    if trace is None:
        raise TraceError(f"{archive} holds no trace {name}")
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / PurePosixPath(name).name
        path.write_bytes(trace)
        return read(path, run=run)


def recorded_runs(path: str | Path, *, run: Run = None) -> Iterator[tuple[str, RunRecord | TraceError]]:
    """Yield the run of each trace of a file or an archive by name; one that cannot be read is given as its error.

    Raises `TraceError` where the file itself cannot be read.
    """
    if not str(path).endswith(TRACES):
        yield str(path), read(path, run=run)
        return
    with tempfile.TemporaryDirectory() as scratch:
        for name, trace in packed_traces(path).items():
            loose = Path(scratch) / PurePosixPath(name).name
            loose.write_bytes(trace)
            try:
                yield name, read(loose, run=run)
            except TraceError as error:
                yield name, error
            loose.unlink()


def read_packed(folder: str | Path) -> Mapping[str, bytes]:
    """All packed traces of a folder by name; empty where none are packed."""
    archive = archive_of(folder)
    return {} if archive is None else packed_traces(archive)
