"""A time limit, and Ctrl-C, for code that runs in this process.

In the main thread a timer signal stops whatever Python's own signal handling can stop: loops, sleeping, waiting,
regular expressions.  In another thread an exception is left for that thread to find at its next step of Python code.
A C function that looks for neither, or `except BaseException` around everything, is not stopped (nor is, on Python
3.12, an empty loop right behind a `try` that catches everything: what is raised at the head of a loop is taken for a
part of the statement before it).  For that, cells have to run in a process of their own.
"""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from types import FrameType
from typing import Any

_REPEAT = 0.2  # seconds: a cell may swallow the first


class CellStopped(BaseException):
    """Raised in a cell at its time limit, or when a host tool ended it."""


class Stopper:
    """Use as a `with` block around a cell, and `enter` and `leave` around the cell's own code: only there is raised.

    The limit is real time without what passes outside, so a host tool leaves and enters again.
    `fired` says that the cell was stopped, `ctrl_c` that the user did it.
    """

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._since = 0.0
        self._inside = self._over = False
        self._thread = threading.get_ident()
        self._news = threading.Condition()
        self._old_timer = (0.0, 0.0)
        self._old_handlers: dict[int, Any] = {}
        self._by_signal = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
        self.fired = False
        self.ctrl_c = False

    def __enter__(self) -> Stopper:
        if self._by_signal:
            self._old_timer = signal.setitimer(signal.ITIMER_REAL, 0)
            self._old_handlers[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._on_alarm)
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                self._old_handlers[signal.SIGINT] = signal.signal(signal.SIGINT, self._on_interrupt)
        else:
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._by_signal:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in self._old_handlers.items():
                signal.signal(number, handler)
            if self._old_timer[0]:
                signal.setitimer(signal.ITIMER_REAL, *self._old_timer)
        with self._news:
            self._over = True
            self._news.notify()

    def enter(self) -> None:
        """The cell's own code begins, or goes on."""
        if self._by_signal:
            self._since, self._inside = time.monotonic(), True
            if self._left < threading.TIMEOUT_MAX:
                signal.setitimer(signal.ITIMER_REAL, max(self._left, 0.001), _REPEAT)
            return
        with self._news:
            self._since, self._inside = time.monotonic(), True
            self._news.notify()

    def leave(self) -> None:
        """The cell's own code is over, or waits for a host tool."""
        if self._by_signal:
            inside, self._inside = self._inside, False
            signal.setitimer(signal.ITIMER_REAL, 0)
        else:
            with self._news:
                inside, self._inside = self._inside, False
                _raise_in(self._thread, None)
        if inside:
            self._left -= time.monotonic() - self._since

    @property
    def mine(self) -> bool:
        """Whether the running thread is the cell's."""
        return threading.get_ident() == self._thread

    def end_soon(self) -> None:
        """A host tool ended the cell: from `enter` it has a moment to end by itself."""
        self._left = min(self._left, 0.05)

    def stop(self) -> None:
        """The session is being closed by another thread: stop the cell now, where that is possible."""
        if not self._by_signal:
            with self._news:
                self._left = 0.0
                self._news.notify()

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
        with self._news:
            while not self._over:
                if not self._inside:
                    self._news.wait()
                    continue
                left = self._left - (time.monotonic() - self._since)
                if left > 0:
                    self._news.wait(min(left, threading.TIMEOUT_MAX))
                    continue
                self.fired = True
                _raise_in(self._thread, CellStopped)
                self._news.wait(_REPEAT)


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Leave an exception for a thread to find, or take it back."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error) if error else None)
