"""A run that leaves the notebook free: the next cells work meanwhile, and a button stops it.

While a cell runs, a kernel hears no click; so a stop button that works in every front end needs a run in a thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from rlm_loop.agents import Agent
from rlm_loop.agents.background import BackgroundRun
from rlm_loop.agents.session import AgentSession
from rlm_loop.outcome import Outcome
from rlm_loop.report.notebook.live import LiveView
from rlm_loop.traces.kept import in_kernel

HOW = "to stop: the stop button, or run.stop() in a cell; what was done until then is kept"


class LiveRun(BackgroundRun):
    """A run in the background with a live view and a stop button, made by `start`."""

    def __init__(
        self,
        work: Callable[[tuple[object, ...]], Outcome],
        view: LiveView | None,
        button: Callable[[Callable[[], None]], Callable[[], None] | None],
    ) -> None:
        self.view = view
        seen = () if view is None else (view,)
        super().__init__(lambda more: work((*seen, *more)), then=button(self.stop))

    def stop(self) -> None:
        asked = self._stop_requested
        super().stop()
        if self.view is not None and self._stop_requested and not asked:
            self.view.stopping()

    def wait(self, seconds: float | None = None) -> Outcome | None:
        """Wait for the end and return the outcome as `result` does; `None` where it goes on after so many seconds."""
        try:
            return self.result(seconds)
        except TimeoutError:
            if self.running:
                return None
            raise

    def result(self, seconds: float | None = None) -> Outcome:
        try:
            return super().result(seconds)
        finally:
            if self.view is not None and not self.running:
                self.view.redraw()  # what executes notebooks without a reader drops what came between two cells


def start_live(
    agent: Agent | AgentSession,
    question: str,
    *,
    view: LiveView | None = None,
    button: bool = True,
    show: bool = True,
    **options: Any,
) -> LiveRun:
    """Run an agent, or ask a session, in the background: returns at once, and the cell's output shows how far it is.

    `button` adds a stop button in a notebook that has ipywidgets (extra `jupyter`); `show=False` shows nothing;
    `view` is a `LiveView` of your own.  `options` are those of `Agent.run` (`context`, `tools`, `workspace`, `trace`)
    or of the session's `ask`.
    """
    shown = (view or LiveView(how_to_stop=HOW)) if show else None
    ask = agent.ask if isinstance(agent, AgentSession) else agent.run
    buttons: Any = stop_button if button and show else lambda _: None  # pyright: ignore[reportUnknownLambdaType]
    return LiveRun(lambda hooks: ask(question, hooks=hooks, **options), shown, buttons).begin()


def stop_button(stop: Callable[[], None]) -> Callable[[], None] | None:
    """Show a button that calls `stop`, and return what takes it away.

    `None` outside a notebook, or where ipywidgets is not installed.
    """
    if not in_kernel() or find_spec("ipywidgets") is None:
        return None
    from IPython.display import display

    widgets: Any = import_module("ipywidgets")  # by name: it is optional
    button = widgets.Button(description="Stop", icon="stop", tooltip="Stop the run; what was done until then is kept")

    def clicked(_: object) -> None:
        button.disabled, button.description = True, "Stopping"
        stop()

    button.on_click(clicked)
    display(button)

    def close() -> None:
        with contextlib.suppress(Exception):  # the notebook may be gone, and its button with it
            button.close()

    return close
