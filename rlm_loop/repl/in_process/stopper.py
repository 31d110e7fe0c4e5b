"""A time limit, and Ctrl-C, for code that runs in this process.

The main thread is stopped by a timer's signal, which ends whatever Python's own signal handling can end: loops,
sleeping, waiting, regular expressions (from one of these, a thread that watched the clock would not get the lock).
For another thread such a thread leaves an exception, to be found at the next step of Python code.  A C function that
looks for neither, or `except BaseException` around everything, is not stopped (nor is, on Python 3.12, an empty loop
right behind a `try` that catches everything).
"""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from types import FrameType
from typing import Any

_TICK = 0.02  # seconds between looks at the clock
_REPEAT = 0.2  # seconds between stops: a cell may swallow the first


class CellStopped(BaseException):
    """Raised in a cell at its time limit, or when a host tool ended it."""


class Stopper:
    """Use as a `with` block around a cell, and `enter` and `leave` around the cell's own code: only there is raised.

    The limit is real time without what passes outside, so a host tool leaves and enters again.
    `fired` says that the cell was stopped, `ctrl_c` that the user did it.
    """

    def __init__(self, seconds: float) -> None:
        self._left, self._since, self._inside = seconds, 0.0, False
        self._thread, self._lock, self._over = threading.get_ident(), threading.Lock(), threading.Event()
        self._old: dict[int, Any] = {}
        self._old_timer = (0.0, 0.0)
        self._by_signal = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
        self.fired = self.ctrl_c = False

    def __enter__(self) -> Stopper:
        if not self._by_signal:
            threading.Thread(target=self._watch, daemon=True).start()
            return self
        self._old_timer = signal.setitimer(signal.ITIMER_REAL, 0)
        self._old[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._on_alarm)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._old[signal.SIGINT] = signal.signal(signal.SIGINT, self._on_interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._by_signal:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in self._old.items():
                signal.signal(number, handler)
            if self._old_timer[0]:
                signal.setitimer(signal.ITIMER_REAL, *self._old_timer)

    def enter(self) -> None:
        """The cell's own code begins, or goes on."""
        self._since, self._inside = time.monotonic(), True
        if self._by_signal and self._left < threading.TIMEOUT_MAX:
            signal.setitimer(signal.ITIMER_REAL, max(self._left, 0.001), _REPEAT)

    def leave(self) -> None:
        """The cell's own code is over, or waits for a host tool."""
        if self._by_signal:
            inside, self._inside = self._inside, False
            signal.setitimer(signal.ITIMER_REAL, 0)
        else:
            with self._lock:
                inside, self._inside = self._inside, False
                _raise_in(self._thread, None)
        if inside:
            self._left -= time.monotonic() - self._since

    @property
    def mine(self) -> bool:
        """True in the cell's thread."""
        return threading.get_ident() == self._thread

    def limit(self, seconds: float) -> None:
        """Leave the cell at most so many seconds: it was ended, and has a moment to end by itself."""
        self._left = min(self._left, seconds)

    def at_least(self, seconds: float) -> None:
        """Raise the remaining time to at least this many seconds, for the work that follows the cell."""
        self._left = max(self._left, seconds)

    def _on_alarm(self, _number: int, _frame: FrameType | None) -> None:
        if self._inside:
            self.fired = True
            raise CellStopped

    def _on_interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self.ctrl_c = True
        raise KeyboardInterrupt

    def _watch(self) -> None:
        pause = _TICK
        while not self._over.wait(pause):
            pause = _TICK
            with self._lock:
                if self._inside and time.monotonic() - self._since >= self._left:
                    self.fired, pause = True, _REPEAT
                    _raise_in(self._thread, CellStopped)


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Leave an exception for a thread to find, or take it back."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error) if error else None)
