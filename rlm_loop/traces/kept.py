"""The log folder: traces of runs that were given no place of their own, at the command line and in notebooks."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlm_loop.traces.trace import Trace

#: Names another folder for the log, or is `off`.
LOG_VARIABLE = "RLM_LOOP_LOG"
_MOST_FILES = 500
_MOST_BYTES = 500_000_000


def log_folder() -> Path | None:
    """Return the folder of the log, which may not be there yet, or `None` where the log is off."""
    named = os.environ.get(LOG_VARIABLE, "").strip()
    if named.lower() == "off":
        return None
    if named:
        return Path(named).expanduser()
    from platformdirs import user_state_path  # here, since `import rlm_loop` does not need it

    return user_state_path("rlm-loop") / "runs"


def new_log() -> Path | None:
    """Return the path of a new trace in the log, or `None` where the log is off or its folder cannot be written.

    The oldest traces are removed so that at most 500 files and 500 MB stay.  Where the folder is new, a line on
    standard error says where it is.
    """
    folder = log_folder()
    if folder is None:
        return None
    first = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)  # questions and data are the user's own
    except OSError:
        return None
    if first:
        print(f"runs are kept in {folder}: rlm-loop view shows them, {LOG_VARIABLE}=off keeps none", file=sys.stderr)
    _make_room(folder)
    return folder / f"{time.strftime('%Y-%m-%d_%H-%M-%S')}_{os.urandom(3).hex()}.jsonl"


def kept_in_notebook(trace: str | Path | Trace | None) -> str | Path | Trace | None:
    """Return the place of a run's trace: as given, else a file of the log where this process is a Jupyter kernel."""
    return new_log() if trace is None and in_kernel() else trace


def in_kernel() -> bool:
    """Say whether this process is a Jupyter kernel; that ipykernel is imported does not say so."""
    ipython: Any = sys.modules.get("IPython")
    return getattr(ipython.get_ipython() if ipython is not None else None, "kernel", None) is not None


def _make_room(folder: Path) -> None:
    """Remove the oldest traces until there is room for one more; their names begin with the time."""
    size = 0
    for number, path in enumerate(sorted(folder.glob("*.jsonl"), reverse=True), 1):
        with suppress(OSError):  # another process may have removed it
            size += path.stat().st_size
            if number >= _MOST_FILES or size > _MOST_BYTES:
                path.unlink()
