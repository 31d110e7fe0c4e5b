"""Recorded runs of a file: a trace, or an archive of traces such as a study packs."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from rlm_loop.traces.reader import RunRecord, read
from rlm_loop.traces.runs import Run
from rlm_loop.traces.trace import TraceError


def recorded_runs(path: str | Path, *, run: Run = None) -> Iterator[tuple[str, RunRecord | TraceError]]:
    """The run of each trace in a file, by name; one that cannot be read is given as its error.

    Raises `TraceError` where the file itself cannot be read.
    """
    if not str(path).endswith((".tar.gz", ".tgz")):
        yield str(path), read(path, run=run)
        return
    try:
        with tarfile.open(path, "r:gz") as tar, tempfile.TemporaryDirectory() as folder:
            for member in tar:
                file = tar.extractfile(member) if member.isfile() else None
                if file is None:
                    continue
                place = Path(folder) / PurePosixPath(member.name).name
                place.write_bytes(file.read())
                try:
                    yield member.name, read(place, run=run)
                except TraceError as error:
                    yield member.name, error
                place.unlink()
    except (OSError, tarfile.TarError, EOFError) as error:
        raise TraceError(f"cannot read the archive {path}: {getattr(error, 'strerror', None) or error}") from error
