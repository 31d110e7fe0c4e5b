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
_shields: dict[int, bool] = {}  # threads that do work of this kind: whether one was interrupted meanwhile


def interrupt_thread(thread: int) -> None:
    """Leave a Ctrl-C for a thread to find at its next step of Python code, or after what it does `shielded`.

    On Python 3.11 a thread that is being started has the number of the one that starts it until it runs, and would be
    told in its place; so this waits until every thread has a number of its own.
    """
    until = time.monotonic() + 1
    while any(one.ident is None for one in threading.enumerate()) and time.monotonic() < until:
        time.sleep(0.0005)
    with _lock:
        if _shields.get(thread) is False:
            _shields[thread] = True
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
    given = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(given):
        with _shielded_thread():
            yield
        return
    held: list[FrameType | None] = []

    def hold(number: int, frame: FrameType | None) -> None:
        if held:
            given(number, frame)
        held.append(frame)

    signal.signal(signal.SIGINT, hold)
    try:
        with _shielded_thread():
            yield
    finally:
        signal.signal(signal.SIGINT, given)
        if len(held) == 1:
            given(signal.SIGINT, held[0])


@contextmanager
def _shielded_thread() -> Generator[None]:
    """Hold back what `interrupt_thread` leaves for this thread."""
    me = threading.get_ident()
    if me in _shields:  # part of other work of this kind
        yield
        return
    try:
        with _lock:
            _shields[me] = False
        yield
    finally:
        with _lock:
            interrupted = _shields.pop(me, False)
        if interrupted:
            raise KeyboardInterrupt
