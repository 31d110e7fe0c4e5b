"""Ctrl-C, pressed when the cell is where it is to be struck: it calls the tool `press`, so no timer has to guess."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path


def press() -> None:
    """Ctrl-C in this process, from another thread, as a terminal or a notebook does it."""
    threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()


def press_once_there_is(path: Path, seconds: float = 60.0) -> threading.Thread:
    """Ctrl-C as soon as a file exists: the second one, after a cell has noted the first."""

    def wait() -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if path.exists():
                os.kill(os.getpid(), signal.SIGINT)
                return
            time.sleep(0.01)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread
