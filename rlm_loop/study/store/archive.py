"""Results small enough to commit: rows and traces packed, the same input giving the same bytes."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from rlm_loop.study.errors import StudyError, no_study
from rlm_loop.study.store.reading import FAIRNESS, LOCK, RESULTS, SCHEMA, read_lock, read_rows
from rlm_loop.traces.reader import RunRecord, read
from rlm_loop.traces.runs import Run
from rlm_loop.traces.trace import TraceError

#: Not compressed: git compresses what it stores, and stores of a file that was recorded again only what changed.
TRACES = "traces.tar"
#: What `export` wrote before, and what is still read.
_COMPRESSED = "traces.tar.gz"
#: What the name of an archive of traces ends in.
ARCHIVES = (".tar", ".tar.gz", ".tgz")


def export(folder: str | Path, target: str | Path, *, traces: bool = True) -> list[Path]:
    """Write a study's lock file, fairness check, rows (`results.jsonl.gz`) and traces (`traces.tar`) to `target`.

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
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
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
    return next((path for name in (TRACES, _COMPRESSED) if (path := Path(folder) / name).is_file()), None)


def packed_traces(archive: str | Path) -> Iterator[tuple[str, bytes]]:
    """The traces of an archive by name, in one pass.  Raises `TraceError` where it cannot be read."""
    try:
        with tarfile.open(archive, "r:*") as tar:
            for member in tar:
                if member.isfile() and (file := tar.extractfile(member)) is not None:
                    yield member.name, file.read()
    except (OSError, tarfile.TarError, EOFError, zlib.error) as error:
        raise TraceError(f"cannot read the archive {archive}: {getattr(error, 'strerror', None) or error}") from error


def read_trace(folder: str | Path, name: str, *, run: Run = None) -> RunRecord:
    """A run of the trace `name` of a study's folder, loose or packed; without `run` the one that counts.

    Raises `TraceError` where there is none.
    """
    loose, packed = Path(folder) / name, archive_of(folder)
    if loose.is_file() or packed is None:
        return read(loose, run=run)
    with tarfile.open(packed, "r:*") as tar:
        try:
            file = tar.extractfile(name)
        except KeyError:
            file = None
        if file is None:
            raise TraceError(f"{packed} holds no trace {name}")
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / PurePosixPath(name).name
            path.write_bytes(file.read())
            return read(path, run=run)


def read_packed(folder: str | Path) -> dict[str, bytes]:
    """All packed traces of a folder by name, unpacked in one pass; empty where none are packed."""
    packed = archive_of(folder)
    return {} if packed is None else dict(packed_traces(packed))
