"""Threads for tools and models, whose caller can stop waiting: at a limit, a stop button, Ctrl-C."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from rlm_loop.accounting.scope import Scope, call_scope

T = TypeVar("T")
#: Seconds.  What stops a thread strikes between two steps of Python, a Ctrl-C too that came just before the wait began;
#: and clocks are arguments.
_SLICE = 0.1


class GivenUp(Exception):
    """The work was not done in time.  It may still go on in its thread."""


class Pending(Generic[T]):
    """Work that is done once, in another thread.

    The first `result` begins it, and several may wait for it.  A work with a `scope` sees in `call_scope` that nobody
    waits for it any more, and `late` is called with a value that came when nobody waited: each value is either returned
    or late.
    """

    def __init__(
        self, work: Callable[[], T], name: str, scope: Scope | None = None, late: Callable[[T], None] | None = None
    ) -> None:
        self._work, self._name, self._late = work, name, late
        self._scope = Scope(call_scope.get() if scope is None else scope)
        self._begun, self._done, self._lock = threading.Lock(), threading.Event(), threading.Lock()
        self._finished = self._given_up = False
        self._value: T | None = None
        self._error: BaseException | None = None

    def result(self, seconds_left: Callable[[], float | None]) -> T:
        """Return or raise the result; raises `GivenUp` once no seconds are left, and then its scope is ended."""
        left: float | None = None
        try:  # a stop may strike before `start` returns, with the work under way
            if self._begun.acquire(blocking=False):
                context = contextvars.copy_context()
                context.run(call_scope.set, self._scope)
                threading.Thread(target=context.run, args=(self._do,), daemon=True, name=self._name).start()
            while not self._done.wait(_SLICE if (left := seconds_left()) is None else min(_SLICE, left)):
                if left is not None and left <= 0:
                    if self._give_up():
                        raise GivenUp
                    break
        except BaseException as error:
            if not isinstance(error, GivenUp) and not self._give_up():
                self._tell_late()
            raise
        if self._error is not None:
            raise self._error
        return self._value  # pyright: ignore[reportReturnType]

    def _do(self) -> None:
        try:
            self._value = self._work()
        except BaseException as error:  # carried to the caller
            self._error = error
        with self._lock:  # from here on the result is used, or it is late: never neither
            self._finished = True
        if self._given_up:
            self._tell_late()
        self._scope.release()
        self._done.set()

    def _give_up(self) -> bool:
        """Give up on the result, unless it is there already."""
        with self._lock:
            self._given_up = not self._finished
        if self._given_up:
            self._scope.end("nobody waits for it any more")
        return self._given_up

    def _tell_late(self) -> None:
        if self._late is not None and self._error is None:
            with contextlib.suppress(Exception):  # nobody is there who could be told
                self._late(self._value)  # pyright: ignore[reportArgumentType]
