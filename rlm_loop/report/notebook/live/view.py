"""A hook that shows a run while it goes on."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rlm_loop.accounting.ledger import Ledger
from rlm_loop.messages import Usage
from rlm_loop.outcome import Outcome, Turn
from rlm_loop.report.notebook.live.state import RunState
from rlm_loop.report.notebook.live.subcalls import SubCalls
from rlm_loop.report.notebook.live.surface import Surface, in_kernel, surface_here
from rlm_loop.report.notebook.live.writing import Writing

INTERRUPT = "to stop: interrupt the kernel (the stop button); what was done until then is kept"
CTRL_C = "to stop: Ctrl-C; what was done until then is kept"


class LiveView:
    """Shows the run of an agent as it happens: `agent.run(question, hooks=(LiveView(),))`.

    Each turn appears as it ends, with the input tokens by cause so far and the state of the sub-calls; when the run is
    over the view shows its outcome, which is also `outcome` here, an interrupted run's too.  `surface` is where it is
    shown: by default the cell's output in a notebook, lines of text elsewhere.  `every` is the least time in seconds
    between two drawings within a turn, `note` one line to be shown with it, `how_to_stop` another.  In a notebook the
    reply is shown while the model writes it; `writes=False` shows it when it is there.

    A view shows one run at a time; a further run makes a new output.  A view that cannot be drawn never ends the run.
    """

    def __init__(
        self,
        surface: Callable[[], Surface] = surface_here,
        *,
        note: str = "",
        how_to_stop: str | None = None,
        every: float = 0.2,
        writes: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open, self._every, self._clock = surface, every, clock
        self._note = note
        self._how = how_to_stop
        self._writes = writes
        self._writing = Writing()
        self._began = 0.0
        self._over = threading.Event()
        self._lock = threading.RLock()
        self._surface: Surface | None = None
        self._latest: Surface | None = None
        self._ledger = Ledger()
        self._calls = SubCalls()
        self._drawn = 0.0
        self.state = RunState()

    @property
    def outcome(self) -> Outcome | None:
        """What the latest run came to; `None` while it goes on."""
        return self.state.outcome

    @property
    def running(self) -> bool:
        """Whether a run is under way."""
        return self._surface is not None

    def stopping(self) -> None:
        """Tell the reader that somebody asked the run to stop."""
        with self._lock:
            self._draw(stopping=True)

    def redraw(self) -> None:
        """Draw the latest state again, in the output of the running cell; some front ends drop output between cells."""
        with self._lock:
            if self._latest is not None:
                self._latest.update(self.state)

    # -- what a run tells (`tools/hooks.py`)

    def on_run_start(self, *, agent: str, model: str, question: str = "", ledger: Ledger | None = None) -> None:
        how = (INTERRUPT if in_kernel() else CTRL_C) if self._how is None else self._how
        with self._lock:
            self._ledger = ledger or Ledger()
            self._calls = SubCalls()
            self.state = RunState(question, agent, model, note=self._note, how_to_stop=how)
            self._surface = self._latest = self._open()
            self._surface.begin(self.state)
            self._drawn = self._began = self._clock()
            self._over = threading.Event()
            if self.on_text is not None:
                context = contextvars.copy_context()  # so that a kernel shows it under the cell that started the run
                threading.Thread(target=context.run, args=(self._tick, self._over), daemon=True).start()

    @property
    def on_text(self) -> Callable[..., None] | None:
        """Hears a reply while it is written; `None` where nothing is shown of it."""
        return self._hear if self._writes and getattr(self._surface, "writes", False) else None

    def _hear(self, *, kind: str, text: str, node: str) -> None:
        with self._lock:
            if node not in self._calls:
                self._writing = self._writing.heard(kind, text)
                soon = kind in ("text", "thinking", "call")
                self._draw(soon=soon, doing=str(self._writing), written=self._writing.shown)

    def _tick(self, over: threading.Event) -> None:
        while not over.wait(1.0):
            with self._lock:
                if not over.is_set():
                    self._draw(soon=True)

    def on_step_start(self, *, turn_index: int) -> None:
        with self._lock:
            if not self._calls.agents:  # else it is a sub-agent's
                self._calls = SubCalls()
                self._writing = Writing()
                self._draw(turn=turn_index, doing=str(self._writing), subcalls="")

    def on_tool_start(self, *, tool: str) -> None:
        with self._lock:
            if not self._calls.agents:
                self._draw(soon=True, doing=f"{tool} runs")

    def on_step_end(self, *, turn: Turn) -> None:
        with self._lock:
            if not self._calls.agents:
                self._draw(turns=(*self.state.turns, turn), doing="", written="", subcalls="")

    def on_subcall_start(self, *, node: str, kind: str, model: str | None = None, prompt: str = "") -> None:
        self._calls.start(node, kind, model, self.state.turn, prompt)
        with self._lock:
            self._draw(soon=True, subcalls=self._calls.line())

    def on_subcall_end(self, *, node: str, ok: bool, seconds: float, usage: Usage, error: str | None = None) -> None:
        self._calls.end(node, ok, error, seconds, usage)
        with self._lock:
            self._draw(soon=True, subcalls=self._calls.line())

    def on_run_end(self, *, outcome: Outcome) -> None:
        with self._lock:
            self._end(turns=tuple(outcome.turns), outcome=outcome)

    def on_run_error(self, *, error: BaseException) -> None:
        with self._lock:
            self._end(error=f"{type(error).__name__}: {error}")

    def _end(self, **changes: Any) -> None:
        self.state = replace(self.state, by_cause=self._ledger.by_cause(), counting=self._ledger.counting, **changes)
        self._over.set()
        surface, self._surface = self._surface, None
        if surface is not None:
            surface.end(self.state)

    def _draw(self, *, soon: bool = False, **changes: Any) -> None:
        """Take the changes and draw them; a change that comes `soon` after the last drawing waits for the next one."""
        self.state = replace(self.state, **changes)
        now = self._clock()
        if self._surface is None or (soon and now - self._drawn < self._every):
            return
        self._drawn = now
        spent = {"by_cause": self._ledger.by_cause(), "counting": self._ledger.counting}
        self.state = replace(self.state, seconds=now - self._began, **spent)
        self._surface.update(self.state)
