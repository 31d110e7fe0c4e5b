"""Looking at processes from outside."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path


def gone(pid: int, seconds: float = 60.0) -> bool:
    """Whether a process has ended (or ends within the time); a zombie has."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        time.sleep(0.01)
    return False


def removed(folder: Path, seconds: float = 60.0) -> bool:
    """Whether a folder has gone (or goes within the time)."""
    end = time.monotonic() + seconds
    while folder.exists() and time.monotonic() < end:
        time.sleep(0.01)
    return not folder.exists()
