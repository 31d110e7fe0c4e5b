"""Readers of texts that a model wrote must not take time that grows with the square of the length."""

from __future__ import annotations

import time
from collections.abc import Callable

SMALL, TIMES = 8_000, 8
FLOOR = 0.006  # seconds: below it, what else the interpreter does counts for more than the text


def grows_in_proportion(read: Callable[[str], object], unit: str, head: str = "", tail: str = "") -> None:
    """Reads `unit` repeated to two lengths; fails where 8 times the text takes more than 25 times the CPU time.

    In proportion it would take 8 times, squared 64 times.  CPU time of this thread: other work does not count.  What
    other work does to the processor's caches may, so one of three tries has to be within.
    """

    def seconds(length: int) -> float:
        text = head + unit * (length // len(unit)) + tail
        begin = time.thread_time()
        read(text)
        return time.thread_time() - begin

    tries: list[float] = []
    while len(tries) < 3:
        tries.append(seconds(SMALL * TIMES) / max(FLOOR, seconds(SMALL)))
        if tries[-1] < 25:
            return
    raise AssertionError(f"{TIMES} times the text took {min(tries):.0f} times as long")


def parts(text: str) -> list[str]:
    """Return the parts of a text that bars divide."""
    return text.split("|")
