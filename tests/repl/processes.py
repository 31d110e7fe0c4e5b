"""Looking at processes from outside, hosts of sessions that are processes of their own, Ctrl-C, and time.

Bounds in seconds hold on a busy machine too, and a session's clock can start when its cell is ready.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
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


_PRESSURE = Path("/proc/pressure/cpu")


def starved() -> float:
    """Seconds, since the machine began, in which somebody waited for a processor (Linux; 0 where it is not known)."""
    try:
        found = re.search(r"^some .*total=(\d+)", _PRESSURE.read_text(), re.MULTILINE)
    except OSError:
        return 0.0
    return int(found[1]) / 1e6 if found else 0.0


class Stopwatch:
    """The seconds that something took.  A promise in seconds is one for a machine that has a processor to give."""

    def __init__(self) -> None:
        self._began, self._starved = time.monotonic(), starved()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def fair(self) -> float:
        """`seconds` without those in which processes waited for a processor: on an idle machine all of them."""
        return max(0.0, self.seconds - (starved() - self._starved))


class Held:
    """A session's clock that stands still until the cell is where a limit is to strike it, and calls the tool `go`.

    Then it runs for `most` seconds, and on at a hundredth of its pace: on a busy machine, too, there is time for the
    last words of what is killed, and grace ends where the seconds until the call of `go` is back used up the `most`.
    """

    def __init__(self, most: float = math.inf) -> None:
        self._most = most
        self._passed, self._since, self._left = 0.0, time.monotonic(), math.inf

    def __call__(self) -> float:
        if not self._left:
            return self._passed
        ran = time.monotonic() - self._since
        return self._passed + (ran if ran <= self._left else self._left + (ran - self._left) / 100)

    def hold(self) -> None:
        self._passed, self._left = self(), 0.0

    def go(self) -> None:
        self._passed, self._since, self._left = self(), time.monotonic(), self._most

    def skip(self, seconds: float) -> None:
        """So much later at once."""
        self._passed += seconds

    def free(self) -> None:
        """As any clock."""
        self._passed, self._since, self._left = self(), time.monotonic(), math.inf
