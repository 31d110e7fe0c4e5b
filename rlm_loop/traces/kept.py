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
    if named.lower() in ("off", "0", "no"):
        return None
    if named:
        return Path(named).expanduser()
    from platformdirs import user_state_path  # here, since `import rlm_loop` does not need it

    return user_state_path("rlm-loop") / "runs"


def new_log(*, tell: bool = True) -> Path | None:
    """Return the path of a new trace in the log, or `None` where the log is off or its folder cannot be written.

    The oldest traces are removed so that at most 500 files and 500 MB stay.  Where the folder is new, a line on
    standard error says where it is, unless `tell` is off.
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
    if first and tell:
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
    """Remove the oldest traces until there is room for one more.  A file that another process removes is no error."""
    traces: list[tuple[float, int, Path]] = []
    for path in folder.glob("*.jsonl"):
        with suppress(OSError):
            found = path.stat()
            traces.append((found.st_mtime, found.st_size, path))
    size = sum(trace[1] for trace in traces)
    for number, (_, own, path) in enumerate(sorted(traces)):
        if len(traces) - number < _MOST_FILES and size <= _MOST_BYTES:
            break
        size -= own
        with suppress(OSError):
            path.unlink()
