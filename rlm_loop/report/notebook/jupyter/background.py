"""A run that leaves the notebook free: the next cells work meanwhile, and a button stops it.

While a cell runs, a kernel hears no click; so a stop button that works in every front end needs a run in a thread.
"""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from rlm_loop.agents import Agent
from rlm_loop.agents.loop import Interrupted
from rlm_loop.outcome import Outcome
from rlm_loop.report.notebook.live import LiveView
from rlm_loop.report.notebook.live.surface import in_kernel
from rlm_loop.traces.trace import Trace

HOW = "to stop: the stop button, or run.stop() in a cell; what was done until then is kept"


class StopButton(Protocol):
    """A button that can be taken away once the run is over."""

    def close(self) -> None: ...


class _Begins:
    """A hook that is told of the first step of a run."""

    def __init__(self, begin: Callable[[], None]) -> None:
        self._begin: Callable[[], None] | None = begin

    def on_step_start(self) -> None:
        begin, self._begin = self._begin, None
        if begin is not None:
            begin()


class LiveRun:
    """A run of an agent in a thread of its own, made by `start`.

    `outcome` is what it came to, `None` while it goes on; after `stop`, and after a fault, it is what was done until
    then, and `error` is the fault.
    """

    def __init__(
        self,
        agent: Agent,
        question: str,
        view: LiveView | None,
        options: Mapping[str, Any],
        button: Callable[[Callable[[], None]], StopButton | None],
    ) -> None:
        self.view = view
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None
        self._lock = threading.Lock()
        self._begun = self._over = self._stop_requested = False
        self._button = button(self.stop)
        hooks = (*(() if view is None else (view,)), _Begins(self._begin_steps))

        def work() -> None:
            try:
                try:
                    self.outcome = agent.run(question, hooks=hooks, **options)
                except BaseException as error:
                    self.outcome = getattr(error, "outcome", None)
                    if not isinstance(error, Interrupted):
                        self.error = error
                with self._lock:
                    self._over = True
            except KeyboardInterrupt:  # the stop came when the run was over
                self._over = True
            finally:
                if self._button is not None:
                    self._button.close()

        context = contextvars.copy_context()  # so that a kernel shows its output under the cell that started it
        self._thread = threading.Thread(target=context.run, args=(work,), name="rlm-loop run", daemon=True)

    def begin(self) -> LiveRun:
        """Start the thread; `start` has done it."""
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
                _interrupt(self._thread.ident)
        if self.view is not None:
            self.view.stopping()

    def _begin_steps(self) -> None:
        with self._lock:
            self._begun = True
            if self._stop_requested:
                raise KeyboardInterrupt

    def wait(self, seconds: float | None = None) -> Outcome | None:
        """Wait for the end and return the outcome; `None` where it is not over after so many seconds.

        A fault of a model or of ours is raised here; a run that was stopped gives its partial outcome.
        """
        self._thread.join(seconds)
        if self._thread.is_alive():
            return None
        if self.view is not None:
            self.view.redraw()  # what executes notebooks without a reader drops what came between two cells
        if self.error is not None:
            raise self.error
        return self.outcome

    def __repr__(self) -> str:
        if self.running:
            turn = f"turn {self.view.state.turn}" if self.view is not None else "under way"
            return f"<LiveRun {turn}; .stop() ends it, .wait() gives the outcome>"
        return f"<LiveRun over: {self.error or self.outcome!r}>"


def start(
    agent: Agent,
    question: str,
    *,
    view: LiveView | None = None,
    trace: str | Path | Trace | None = None,
    button: bool = True,
    show: bool = True,
    **options: Any,
) -> LiveRun:
    """Run an agent in the background: returns at once, and the cell's output shows how far it is.

    `button` adds a stop button in a notebook that has ipywidgets (extra `jupyter`); `show=False` shows nothing;
    `view` is a `LiveView` of your own.  `options` are those of `Agent.run` (`context`, `tools`, `workspace`).
    """
    shown = (view or LiveView(how_to_stop=HOW)) if show else None
    run = LiveRun(agent, question, shown, {"trace": trace, **options}, stop_button if button and show else _no_button)
    return run.begin()


def _no_button(_stop: Callable[[], None]) -> None:
    return None


def _interrupt(thread: int) -> None:
    """Leave a Ctrl-C for a thread to find at its next step of Python code."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))


def stop_button(stop: Callable[[], None]) -> StopButton | None:
    """Show a button that calls `stop`; `None` outside a notebook, or where ipywidgets is not installed."""
    if not in_kernel() or find_spec("ipywidgets") is None:
        return None
    Button: Any = import_module("ipywidgets").Button  # by name: it is optional

    button: Any = Button(description="Stop", icon="stop", tooltip="Stop the run; what was done until then is kept")

    def clicked(_: object) -> None:
        button.disabled, button.description = True, "Stopping"
        stop()

    button.on_click(clicked)
    from IPython.display import display

    display(button)
    return _Shown(button)


class _Shown:
    def __init__(self, button: Any) -> None:
        self._button = button

    def close(self) -> None:
        with contextlib.suppress(Exception):  # the notebook may be gone, and its button with it
            self._button.close()
