"""Recorded runs of a file: a trace, or an archive of traces such as a study packs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from rlm_loop.study.store.archive import ARCHIVES, packed_traces
from rlm_loop.traces.reader import RunRecord, read
from rlm_loop.traces.runs import Run
from rlm_loop.traces.trace import TraceError


def recorded_runs(path: str | Path, *, run: Run = None) -> Iterator[tuple[str, RunRecord | TraceError]]:
    """The run of each trace in a file, by name; one that cannot be read is given as its error.

    Raises `TraceError` where the file itself cannot be read.
    """
    if not str(path).endswith(ARCHIVES):
        yield str(path), read(path, run=run)
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, data in packed_traces(path):
            place = Path(folder) / PurePosixPath(name).name
            place.write_bytes(data)
            try:
                yield name, read(place, run=run)
            except TraceError as error:
                yield name, error
            place.unlink()
