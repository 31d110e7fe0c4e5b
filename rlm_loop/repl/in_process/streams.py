"""Output of code that runs in this process, told apart from what everything else in it prints.

`sys.stdout` and `sys.stderr` belong to the whole process, so they cannot simply be replaced for a cell: other threads
may print, or run cells of their own.  From the first cell on they are routers, which look up whose output it is.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
import threading
from collections.abc import Generator
from typing import Any

from rlm_loop.repl.text import RECORD_CAP, Ends


class CellOutput(Ends):
    """The text that one cell printed: its beginning and its end, when it is long.

    One that is `passed_on` goes to the process's stream as well: the text that a tool of the host printed.
    """

    def __init__(self, cap: int, *, passed_on: bool = False) -> None:
        super().__init__(max(cap, RECORD_CAP))
        self.passed_on, self._lock = passed_on, threading.Lock()

    def add(self, text: str) -> None:
        with self._lock:
            super().add(text.encode("utf-8", "backslashreplace").decode())

    def text(self) -> str:
        with self._lock:
            return super().text()


_output: contextvars.ContextVar[CellOutput | None] = contextvars.ContextVar("cell_output", default=None)


class _Router:
    """A stream of the process, but for code that runs in a cell the cell's."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        output = _output.get()
        if output is not None:
            output.add(text)
        return self.stream.write(text) if output is None or output.passed_on else len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def captured(output: CellOutput | None) -> Generator[None]:
    """Send what this thread prints to `output`; None is for a host tool within a cell, and threads are not followed."""
    for name in ("stdout", "stderr"):  # each time: somebody may have replaced them since the first cell began
        if not isinstance(stream := getattr(sys, name), _Router):
            setattr(sys, name, _Router(stream))
    token = _output.set(output)
    try:
        yield
    finally:
        _output.reset(token)
