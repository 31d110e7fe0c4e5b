"""Scopes: runs, cells and sub-calls, which may be ended from outside with all below them; slots and locks of theirs."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    _RLock: Any = object
else:
    _RLock = type(threading.RLock())


class Cancelled(BaseException):
    """The scope of this work was ended.  Not an `Exception`: no `except Exception` on the way may swallow it."""


class OwnLock(_RLock):
    """A lock for `with`, whose owner can be copied and pickled: the copy gets a lock of its own."""

    def __reduce__(self) -> tuple[type[OwnLock], tuple[()]]:
        return OwnLock, ()


class Scope:
    """Work that is ended once, by `end`, from any thread; scopes made with it as a parent end with it.

    `parents` may be several: a sub-call belongs to its agent and to the cell that asked for it.  `reason` says why it
    was ended, and is `None` while it was not.
    """

    def __init__(self, *parents: Scope | None) -> None:
        self._lock = threading.Lock()
        self._callbacks: dict[object, Callable[[], None]] = {}
        self.reason: str | None = None
        self._joined: list[tuple[Scope, object]] = []
        for parent in parents:
            if parent is not None:
                self._joined.append((parent, parent.at_end(lambda p=parent: self.end(p.reason or "ended"))))

    @property
    def ended(self) -> bool:
        return self.reason is not None

    def end(self, reason: str) -> None:
        """End it and all below; what waits in `waking` is woken.  Only the first reason counts."""
        with self._lock:
            if self.reason is not None:
                return
            self.reason = reason
            callbacks, self._callbacks = self._callbacks, {}
        for callback in callbacks.values():
            callback()

    def check(self) -> None:
        """Raise `Cancelled` once it was ended."""
        if self.reason is not None:
            raise Cancelled(self.reason)

    @contextlib.contextmanager
    def waking(self, callback: Callable[[], None]) -> Generator[None]:
        """Call back, once and at once, if it is (or was) ended while the block runs.  Callbacks must be quick."""
        key = self.at_end(callback)
        try:
            yield
        finally:
            self.forget(key)

    def release(self) -> None:
        """Let the parents forget this scope: its work is over."""
        for parent, key in self._joined:
            parent.forget(key)

    def wait(self, news: threading.Condition, seconds: float | None = None) -> None:
        """Wait for news of a condition that is held.  Raises `Cancelled` once it was ended, which is news as well."""

        def wake() -> None:
            with news:
                news.notify_all()

        with self.waking(wake):
            self.check()
            news.wait(seconds)
        self.check()

    def at_end(self, callback: Callable[[], None]) -> object:
        """Call back once it is ended, or at once if it was; returns the key by which `forget` drops the callback."""
        key = object()
        with self._lock:
            if self.reason is None:
                self._callbacks[key] = callback
                return key
        callback()
        return key

    def forget(self, key: object) -> None:
        with self._lock:
            self._callbacks.pop(key, None)


class Slots:
    """At most `limit` holders at a time."""

    def __init__(self, limit: int) -> None:
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise ValueError(f"concurrency must be a number of calls at once, 1 or more, got {limit!r}")
        self.limit = self._free = limit
        self._news = threading.Condition()

    @contextlib.contextmanager
    def held(self, scope: Scope) -> Generator[None]:
        """Wait for a slot and hold it for the block; raises `Cancelled` where the scope ends first."""
        with self._news:
            scope.check()
            while not self._free:
                scope.wait(self._news)
            self._free -= 1
        try:
            yield
        finally:
            with self._news:
                self._free += 1
                self._news.notify_all()


call_scope: contextvars.ContextVar[Scope | None] = contextvars.ContextVar("call_scope", default=None)
"""The scope of the model call or tool call that this context works for; it ends when nobody waits for it any more."""

cell_scope: contextvars.ContextVar[Scope | None] = contextvars.ContextVar("cell_scope", default=None)
"""The scope of the cell for which this context runs a host tool; it ends with the cell."""
