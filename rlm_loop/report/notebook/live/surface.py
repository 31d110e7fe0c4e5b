"""Where a running agent is shown: the output of a notebook's cell, or a stream of text."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TextIO

from rlm_loop.report.notebook.live.drawn import Bundle, begin_text, end_text, live_parts, turn_text
from rlm_loop.report.notebook.live.state import RunState


class Surface(Protocol):
    """Shows the moments of one run, in order.  Called from the run's threads, one at a time.

    One with the attribute `writes = True` is shown the replies as they are written, and each second.
    """

    def begin(self, state: RunState) -> None: ...
    def update(self, state: RunState) -> None: ...
    def end(self, state: RunState) -> None: ...


class NotebookSurface:
    """Two outputs of a cell (`live_parts`), replaced as the run goes on: HTML, with the same as plain text beside it.

    It needs nothing of the front end but display updates, which Jupyter, VS Code and Colab have: no script, no widget.
    `display` and `update` are those of IPython.  Raises `ImportError` where it is not installed.
    """

    writes = True

    def __init__(self, display: Callable[..., Any] | None = None, update: Callable[..., Any] | None = None) -> None:
        if display is None or update is None:
            from IPython.display import display
            from IPython.display import update_display as update

        self._display, self._update = display, update
        self._ids = [f"rlm-loop-{uuid.uuid4().hex}" for _ in range(2)]
        self._shown: Sequence[Bundle] = ()

    def begin(self, state: RunState) -> None:
        self._shown = live_parts(state)
        for ident, part in zip(self._ids, self._shown, strict=True):
            self._display(part, raw=True, display_id=ident)

    def update(self, state: RunState) -> None:
        """Draw what has changed: what is drawn again closes what a reader opened.  The end is always drawn whole."""
        before, self._shown = self._shown, live_parts(state)
        over = state.outcome is not None or bool(state.error)
        for ident, part, old in zip(self._ids, self._shown, before, strict=True):
            if over or part != old:
                self._update(part, raw=True, display_id=ident)

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
