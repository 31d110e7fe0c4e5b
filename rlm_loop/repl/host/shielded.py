"""Ctrl-C for a thread, and short work that one Ctrl-C does not break off."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

_lock = threading.Lock()
_held: dict[int, int] = {}
"""Threads that do short work, and how often each was interrupted meanwhile."""


def interrupt_thread(thread: int) -> None:
    """Leave a Ctrl-C for a thread to find at its next step of Python code, or after what it does `shielded`.

    On Python 3.11 a thread that is being started has the number of the one that starts it until it runs, and would be
    told in its place; so this waits until every thread has a number of its own.
    """
    until = time.monotonic() + 1
    while any(one.ident is None for one in threading.enumerate()) and time.monotonic() < until:
        time.sleep(0.0005)
    with _lock:
        if _held.get(thread) == 0:
            _held[thread] = 1
        else:
            raise_in(thread, KeyboardInterrupt)


def raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Leave an exception for a thread to find at its next step, or take it back."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error) if error else None)


@contextmanager
def shielded() -> Generator[None]:
    """Hold Ctrl-C back until the body is done, which must be short; a second one is not held back.

    So a process that is being started is known to who has to end it, and what is being cleared away is gone.
    """
    me, given = threading.get_ident(), signal.getsignal(signal.SIGINT)
    if me in _held:  # part of other work of this kind
        yield
        return
    main = threading.current_thread() is threading.main_thread() and callable(given)

    def hold(number: int, frame: FrameType | None) -> None:
        _held[me] += 1
        if _held[me] > 1 and callable(given):
            given(number, frame)

    try:
        _held[me] = 0
        if main:
            signal.signal(signal.SIGINT, hold)
        yield
    finally:
        if main:
            signal.signal(signal.SIGINT, given)
        with _lock:
            interrupts = _held.pop(me, 0)
        if interrupts == 1 and callable(given) and main:
            given(signal.SIGINT, None)
        elif interrupts == 1:
            raise KeyboardInterrupt
