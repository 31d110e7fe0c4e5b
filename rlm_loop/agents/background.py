"""A run in a thread of its own: its caller goes on, and can stop it, wait for it or await it."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress

from rlm_loop.agents.run import Interrupted
from rlm_loop.outcome import Outcome
from rlm_loop.repl.host.shielded import interrupt_thread

_LOOK = 0.2  # seconds


class LiveRun:
    """A run under way in a thread of its own, which begins at once; `report.notebook.start_live` makes it.

    `work` runs it with this as one of its hooks.  `outcome` is what it came to, `None` while it goes on; after
    `stop`, and after a fault, it is what was done until then, and `error` is the fault.
    """

    def __init__(self, work: Callable[[object], Outcome]) -> None:
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None
        self._work, self._lock = work, threading.Lock()
        self.running, self._stop_requested = True, False
        self._stepping: int | None = None  # the run's thread, once it takes steps
        context = contextvars.copy_context()  # so that a kernel shows its output under the cell that started it
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="rlm-loop run", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask the run to stop, as Ctrl-C does, and return at once; called again it does nothing more.

        A cell is interrupted; a reply that the model is writing is not waited for.
        """
        with self._lock:
            before, self._stop_requested = self._stop_requested, True
            # before its first step the run ends there: what is made ready has no outcome yet
            if self.running and self._stepping is not None and not before:
                interrupt_thread(self._stepping)

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

    def on_step_start(self) -> None:
        """Hear, as a hook of the run, of its steps: from the first on it can be interrupted.

        A stop that came before it ends it here; so does one that struck in a finalizer, where Python drops it.
        """
        with self._lock:
            self._stepping = self._stepping or threading.get_ident()
            if self._stop_requested:
                raise KeyboardInterrupt

    def _run(self) -> None:
        with suppress(KeyboardInterrupt):  # a stop that came when the run was over
            try:
                self.outcome = self._work(self)
            except BaseException as error:
                self.outcome = getattr(error, "outcome", None)
                self.error = None if isinstance(error, Interrupted) else error
            with self._lock:
                self.running = False
        self.running = False

    def __repr__(self) -> str:
        state = "under way" if self.running else f"over: {self.error or self.outcome!r}"
        return f"<{type(self).__name__} {state}>"


async def awaited(run: LiveRun) -> Outcome:
    """Return the outcome of a run that has begun; where the task that awaits it is cancelled, the run is stopped."""
    try:
        while run.running:  # a kernel's stop button cancels the cell, and wakes no loop that waits for ever
            await asyncio.sleep(_LOOK)
    finally:
        run.stop()
        while run.running:
            await asyncio.sleep(_LOOK)
    return run.result()
