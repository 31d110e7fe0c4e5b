"""Cleaning up that one Ctrl-C does not break off."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def shielded() -> Generator[None]:
    """Hold Ctrl-C back until the body is done, which must be short; a second one is not held back.

    Only the main thread is told of Ctrl-C, so elsewhere there is nothing to hold back.
    """
    given = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(given):
        yield
        return
    held: list[FrameType | None] = []

    def hold(number: int, frame: FrameType | None) -> None:
        if held:
            given(number, frame)
        held.append(frame)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, given)
        if len(held) == 1:
            given(signal.SIGINT, held[0])
