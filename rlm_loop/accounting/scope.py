"""Scopes: what may be ended from outside, such as a run, a cell, a sub-call.  Ending one ends all that is below it."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Generator


class Cancelled(BaseException):
    """The scope of this work was ended.  Not an `Exception`: no `except Exception` on the way may swallow it."""


class Scope:
    """Ended once, by `end`, from any thread; scopes made with it as a parent end with it.

    `parents` may be several: a sub-call belongs to its agent and to the cell that asked for it.
    """

    def __init__(self, *parents: Scope | None) -> None:
        self._lock = threading.Lock()
        self._told: dict[int, Callable[[], None]] = {}
        self._next = 0
        self.reason: str | None = None
        """Why it was ended; `None` while it was not."""
        self._leave = [(parent, parent._join(self)) for parent in parents if parent is not None]

    @property
    def ended(self) -> bool:
        return self.reason is not None

    def end(self, reason: str) -> None:
        """End it and all below; what waits in `waking` is woken.  Only the first reason counts."""
        with self._lock:
            if self.reason is not None:
                return
            self.reason = reason
            told, self._told = list(self._told.values()), {}
        for callback in told:
            callback()

    def check(self) -> None:
        """Raise `Cancelled` once it was ended."""
        if self.reason is not None:
            raise Cancelled(self.reason)

    @contextlib.contextmanager
    def waking(self, callback: Callable[[], None]) -> Generator[None]:
        """Call back, once and at once, if it is (or was) ended while the block runs.  Callbacks must be quick."""
        number = self._tell(callback)
        try:
            yield
        finally:
            self._forget(number)

    def release(self) -> None:
        """The work is over: parents need not remember this scope any more."""
        for parent, number in self._leave:
            parent._forget(number)

    def _join(self, child: Scope) -> int:
        return self._tell(lambda: child.end(self.reason or "ended"))

    def _tell(self, callback: Callable[[], None]) -> int:
        with self._lock:
            if self.reason is None:
                self._next += 1
                self._told[self._next] = callback
                return self._next
        callback()
        return 0

    def _forget(self, number: int) -> None:
        with self._lock:
            self._told.pop(number, None)


call_scope: contextvars.ContextVar[Scope | None] = contextvars.ContextVar("call_scope", default=None)
"""The scope of the model call or tool call that this context works for; it ends when nobody waits for it any more."""

cell_scope: contextvars.ContextVar[Scope | None] = contextvars.ContextVar("cell_scope", default=None)
"""The scope of the cell for which this context runs a host tool; it ends with the cell."""
