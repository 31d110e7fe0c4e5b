"""Work in a thread of its own, so that whoever waits can stop: at a limit, at a stop button, at Ctrl-C."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from rlm_loop.accounting.scope import Scope, call_scope
from rlm_loop.tools.threads import TOOL_THREADS

T = TypeVar("T")
_SLICE = 0.1  # seconds: what stops another thread strikes between two steps of Python, and clocks are arguments


class GivenUp(Exception):
    """The work was not done in time.  It may still go on, in its thread, and what it gives goes to nobody."""


class Pending(Generic[T]):
    """Work that goes on in another thread.  It can see in `call_scope` that nobody waits for it any more.

    `late` is told of a value that came when nobody waited.
    """

    def __init__(
        self, work: Callable[[], T], name: str, parent: Scope | None = None, late: Callable[[T], None] | None = None
    ) -> None:
        self._work, self._late, self._done = work, late, threading.Event()
        self._value: T | None = None
        self._error: BaseException | None = None
        self._scope = Scope(parent)
        context = contextvars.copy_context()
        context.run(call_scope.set, self._scope)
        TOOL_THREADS.run(name, lambda: context.run(self._do))

    def result(self, seconds_left: Callable[[], float | None]) -> T:
        """What the work gave or raised; `GivenUp` once no seconds are left, and then the work is told to stop."""
        try:
            if not wait(self._done, seconds_left):
                raise GivenUp
        except BaseException:
            self._scope.end("nobody waits for it any more")
            raise
        if self._error is not None:
            raise self._error
        return self._value  # pyright: ignore[reportReturnType]

    def _do(self) -> Callable[[], None]:
        try:
            self._value = value = self._work()
            if self._scope.ended and self._late is not None:
                self._late(value)
        except BaseException as error:  # carried to who waits
            self._error = error
        self._scope.release()
        return self._done.set


def wait(done: threading.Event, seconds_left: Callable[[], float | None]) -> bool:
    """Wait for an event while there are seconds left (`None`: without a limit); whether it came."""
    main = threading.current_thread() is threading.main_thread()
    while True:
        left = seconds_left()
        if left is None and main:
            return done.wait()
        if done.wait(_SLICE if left is None else min(_SLICE, left)):
            return True
        if left is not None and left <= 0:
            return False
