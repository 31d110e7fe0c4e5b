"""A run in a thread of its own: its caller goes on, and can stop it, wait for it or await it."""

from __future__ import annotations

import contextvars
import ctypes
import threading
import time
from collections.abc import Callable
from typing import Self

from rlm_loop.agents.run import Interrupted
from rlm_loop.outcome import Outcome

_LOOK = 0.2  # seconds


class _Begins:
    """A hook that is told of the first step of a run."""

    def __init__(self, begin: Callable[[], None]) -> None:
        self._begin: Callable[[], None] | None = begin

    def on_step_start(self) -> None:
        begin, self._begin = self._begin, None
        if begin is not None:
            begin()


class BackgroundRun:
    """A run under way; `agent.start(...)` makes it.  `work` runs it with the hooks that it is given.

    `outcome` is what it came to, `None` while it goes on; after `stop`, and after a fault, it is what was done until
    then, and `error` is the fault.  `then` is called at its end, in its thread.
    """

    def __init__(
        self, work: Callable[[tuple[object, ...]], Outcome], *, then: Callable[[], None] | None = None
    ) -> None:
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None
        self._lock = threading.Lock()
        self._begun = self._over = self._stop_requested = False

        def run() -> None:
            try:
                try:
                    self.outcome = work((_Begins(self._begin_steps),))
                except BaseException as error:
                    self.outcome = getattr(error, "outcome", None)
                    if not isinstance(error, Interrupted):
                        self.error = error
                with self._lock:
                    self._over = True
            except KeyboardInterrupt:  # the stop came when the run was over
                self._over = True
            finally:
                if then is not None:
                    then()

        context = contextvars.copy_context()  # so that a kernel shows its output under the cell that started it
        self._thread = threading.Thread(target=context.run, args=(run,), name="rlm-loop run", daemon=True)

    def begin(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    @property
    def running(self) -> bool:
        return self._thread.is_alive() and not self._over

    def stop(self) -> None:
        """Ask the run to stop, as Ctrl-C does, and return at once; called again it does nothing more.

        A cell is interrupted; a reply that the model is writing is not waited for.
        """
        with self._lock:
            if self._over or self._stop_requested or self._thread.ident is None:
                return
            self._stop_requested = True
            if self._begun:  # else the first step ends it: what is made ready before it has no outcome yet
                interrupt_thread(self._thread.ident)

    def result(self, seconds: float | None = None) -> Outcome:
        """Wait for the end and return the outcome; of a run that was stopped, the partial one.

        Raises the fault of a model or of ours, and `TimeoutError` where the run is not over after so many seconds.
        """
        self._thread.join(seconds)
        if self._thread.is_alive():
            raise TimeoutError(f"the run is not over after {seconds:g} s; .stop() ends it")
        if self.error is not None:
            raise self.error
        assert self.outcome is not None  # an interrupted run has one too
        return self.outcome

    def _begin_steps(self) -> None:
        with self._lock:
            self._begun = True
            if self._stop_requested:
                raise KeyboardInterrupt

    def __repr__(self) -> str:
        if self.running:
            return f"<{type(self).__name__} under way; .stop() ends it, .result() gives the outcome>"
        return f"<{type(self).__name__} over: {self.error or self.outcome!r}>"


async def awaited(work: Callable[[tuple[object, ...]], Outcome]) -> Outcome:
    """The outcome of a run in a thread; where the task that awaits it is cancelled, the run is stopped first."""
    import asyncio  # 30 ms, which only who awaits should pay

    loop = asyncio.get_running_loop()
    over = asyncio.Event()

    def tell() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(over.set)

    run = BackgroundRun(work, then=tell).begin()
    ended = asyncio.ensure_future(over.wait())
    try:
        while not ended.done():  # a kernel's stop button cancels the cell, and wakes no loop that waits for ever
            await asyncio.wait([ended], timeout=_LOOK)
    except asyncio.CancelledError:
        run.stop()
        await ended
        raise
    return run.result()


def interrupt_thread(thread: int) -> None:
    """Leave a Ctrl-C for a thread to find at its next step of Python code.

    On Python 3.11 a thread that is being started has the number of the one that starts it until it runs, and would be
    told in its place; so this waits until every thread has a number of its own.
    """
    until = time.monotonic() + 1
    while any(one.ident is None for one in threading.enumerate()) and time.monotonic() < until:
        time.sleep(0.0005)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))
