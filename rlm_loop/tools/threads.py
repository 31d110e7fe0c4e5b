"""Threads in which tools and models run, so that whoever waits can stop: at a limit, at a stop button, at Ctrl-C.

To start a thread takes longer than most calls, so a free one is used again: while calls follow each other closely, and
no longer, so that a program which has done with its tools has no threads of ours.  Async tools share one event loop: a
client that a tool opens in one call belongs to its loop, so the next call must find the same.  The caller's loop does
not do: in a notebook it is busy running the cell that asked.
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Awaitable, Callable
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from rlm_loop.accounting.scope import Scope, call_scope

Work = Callable[[], Callable[[], None]]
"""What a thread is to do; it returns what is to be called when the thread is free again."""


class ToolThreads:
    """Daemon threads that end when they were free for `idle` seconds.  A tool that never returns keeps its own."""

    def __init__(self, idle: float = 1.0) -> None:
        self._idle = idle
        self._free: list[SimpleQueue[tuple[str, Work]]] = []  # a thread is known by its inbox
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._free.clear)  # threads are not in the child

    def run(self, name: str, work: Work) -> None:
        """Have it done in a thread which has that name meanwhile.  Does not wait."""
        try:
            inbox = self._free.pop()
        except IndexError:
            inbox = SimpleQueue[tuple[str, Work]]()
            threading.Thread(target=self._serve, args=(inbox,), daemon=True, name=name).start()
        inbox.put((name, work))

    def _serve(self, inbox: SimpleQueue[tuple[str, Work]]) -> None:
        thread = threading.current_thread()
        while True:
            try:
                thread.name, work = inbox.get(timeout=self._idle)
            except Empty:
                try:
                    self._free.remove(inbox)
                except ValueError:  # somebody has just taken it, and is about to hand over work
                    thread.name, work = inbox.get()
                else:
                    return
            done = work()
            self._free.append(inbox)
            done()
            del work, done  # what was called is not kept alive by a thread that waits


TOOL_THREADS = ToolThreads()


T = TypeVar("T")
#: Seconds.  What stops a thread strikes between two steps of Python, a Ctrl-C too that came just before the wait began;
#: and clocks are arguments.
_SLICE = 0.1


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
    while True:
        left = seconds_left()
        if done.wait(_SLICE if left is None else min(_SLICE, left)):
            return True
        if left is not None and left <= 0:
            return False


_lock = threading.Lock()
_loops: dict[int, Any] = {}  # by process: a forked child has the memory, and not the thread


def awaited(work: Awaitable[Any]) -> Any:
    """What the work gives or raises; the calling thread waits for it."""
    import asyncio

    async def run() -> Any:
        return await work

    return asyncio.run_coroutine_threadsafe(run(), _loop()).result()


def _loop() -> Any:
    import asyncio  # 30 ms, which only an async tool should cost

    with _lock:
        loop = _loops.get(os.getpid())
        if loop is None:
            _loops.clear()
            loop = _loops[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, daemon=True, name="async tools").start()
        return loop
