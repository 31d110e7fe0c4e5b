"""Where a running agent is shown: the output of a notebook's cell, or a stream of text."""

from __future__ import annotations

import sys
import uuid
from typing import Any, Protocol, TextIO

from rlm_loop.report.notebook.live.drawn import begin_text, end_text, live_html, live_text, turn_text
from rlm_loop.report.notebook.live.state import RunState


class Surface(Protocol):
    """Shows the moments of one run, in order.  Called from the run's threads, one at a time.

    One with the attribute `writes = True` is shown the replies as they are written, and each second.
    """

    def begin(self, state: RunState) -> None: ...
    def update(self, state: RunState) -> None: ...
    def end(self, state: RunState) -> None: ...


class NotebookSurface:
    """One output of a cell, replaced as the run goes on: HTML, with the same as plain text beside it.

    It needs nothing of the front end but display updates, which Jupyter, VS Code and Colab have: no script, no widget.
    Raises `ImportError` where IPython is not installed.
    """

    writes = True

    def __init__(self) -> None:
        from IPython.display import display, update_display

        self._display: Any = display
        self._update: Any = update_display
        self._id = f"rlm-loop-{uuid.uuid4().hex}"

    def begin(self, state: RunState) -> None:
        self._display(_bundle(state), raw=True, display_id=self._id)

    def update(self, state: RunState) -> None:
        self._update(_bundle(state), raw=True, display_id=self._id)

    end = update


class TextSurface:
    """Each turn as it ends, as plain lines; `stream` is standard error by default, so that output stays clean."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._told = 0

    def begin(self, state: RunState) -> None:
        self._told = 0
        self._say(begin_text(state))

    def update(self, state: RunState) -> None:
        for turn in state.turns[self._told :]:
            self._say(turn_text(turn))
        self._told = len(state.turns)

    def end(self, state: RunState) -> None:
        self.update(state)
        self._say(end_text(state))

    def _say(self, text: str) -> None:
        stream = sys.stderr if self._stream is None else self._stream
        encoding = getattr(stream, "encoding", None) or "utf-8"
        print(text.encode(encoding, "replace").decode(encoding, "replace"), file=stream, flush=True)


def surface_here() -> Surface:
    """The one that fits: a notebook's output in a Jupyter kernel, else text."""
    return NotebookSurface() if in_kernel() else TextSurface()


def in_kernel() -> bool:
    """This process is a Jupyter kernel; that ipykernel is imported does not say so."""
    ipython: Any = sys.modules.get("IPython")
    return getattr(ipython.get_ipython() if ipython is not None else None, "kernel", None) is not None


def _bundle(state: RunState) -> dict[str, str]:
    return {"text/html": live_html(state), "text/plain": live_text(state)}
