"""Attempts that were broken off: marked in their trace when they are tried again, so that nobody reads them as runs."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path

from rlm_loop.traces.file import LineFile
from rlm_loop.traces.runs import runs_in
from rlm_loop.traces.trace import TraceError

TRIED_AGAIN = "it was broken off and tried again"


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
            lines = [{"run": run.key, "event": "aborted", "at": round(clock(), 3), "reason": reason} for run in marked]
            file = LineFile(path)
            try:
                file.append("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
            finally:
                file.close()
        return [run.id for run in marked]
    return []
