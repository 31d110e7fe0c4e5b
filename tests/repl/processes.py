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


def replaced(supervisor: int, pid: int, seconds: float = 60.0) -> bool:
    """Whether a worker's supervisor has another REPL than `pid` (or gets one within the time).  Linux only.

    It tells the host of the end before that, so the next use of the session knows.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
            if children and str(pid) not in children:
                return True
        time.sleep(0.01)
    return False


PIDS = "[__import__('os').getppid(), __import__('os').getpid()]"
"""What a session's `get` is asked for: its supervisor and its REPL."""
