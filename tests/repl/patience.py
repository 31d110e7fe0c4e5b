"""Time in tests: bounds that hold on a busy machine too, and clocks that start when the cell is ready."""

from __future__ import annotations

import math
import re
import time
from pathlib import Path

_PRESSURE = Path("/proc/pressure/cpu")


def starved() -> float:
    """Seconds, since the machine began, in which somebody waited for a processor (Linux; 0 where it is not known)."""
    try:
        found = re.search(r"^some .*total=(\d+)", _PRESSURE.read_text(), re.MULTILINE)
    except OSError:
        return 0.0
    return int(found[1]) / 1e6 if found else 0.0


class Stopwatch:
    """How long something took.  A promise in seconds is one for a machine that has a processor to give."""

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
    """A session's clock that stands still until the cell says, by calling the host tool `go`, that it is ready.

    Where a machine is so busy that a cell of half a line does not begin within its time limit, the limit strikes
    somewhere else than meant.

    After `go` it runs for `most` seconds, and then at a hundredth of its pace: with a little more than time limit and
    grace, a session that has to kill has time for the last words of what it killed, as it would not on a busy machine.
    It does not stand still, since the seconds until the call of `go` is back are not the cell's: where those
    were more than the little, the session would wait for its grace time for ever.
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
