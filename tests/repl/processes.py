"""Looking at processes from outside, hosts of sessions that are processes of their own, and Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from suite.world import marked


def until(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Return True once something becomes true within the time, else False."""
    end = time.monotonic() + seconds
    while not (true := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return true


def gone(pid: int, seconds: float = 60.0) -> bool:
    """Whether a process has ended (or ends within the time); a zombie has."""

    def ended() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        return False

    return until(ended, seconds)


def left_nothing(folder: Path) -> bool:
    """Whether a session's private folder, and every process in it, has gone (or goes within a minute)."""
    return until(lambda: not folder.exists()) and until(lambda: not marked(folder.name))


@contextlib.contextmanager
def host(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A Python of its own that runs this code and can import what this one can; it is killed at the end."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command, pipe = [sys.executable, "-c", textwrap.dedent(code), *arguments], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=env) as process:
        try:
            yield process
        finally:
            process.kill()


def told(process: subprocess.Popen[str]) -> str:
    """The next line that a host printed."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def press() -> None:
    """Ctrl-C in this process, from another thread, as a terminal or a notebook does it: no timer has to guess.

    A cell calls it as a tool where it is to be struck.
    """
    threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()
