"""What cells print that run in this process, told apart from what everything else in it prints.

`sys.stdout` and `sys.stderr` belong to the whole process, so they cannot simply be replaced for a cell: other threads
may print, or run cells of their own.  While any cell runs they are routers, which look up whose output it is.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
import threading
from collections.abc import Generator
from typing import Any

from rlm_loop.repl.text import Piece, printed
from rlm_loop.repl.worker import Capture


class CellOutput:
    """The text that one cell printed: its beginning and its end, when it is long.

    One that is `passed_on` goes to the process's stream as well: the text that a tool of the host printed.
    """

    def __init__(self, cap: int, *, passed_on: bool = False) -> None:
        self._kept, self.passed_on = Capture(-1, cap), passed_on
        self._lock = threading.Lock()

    def write(self, text: str) -> int:
        with self._lock:
            self._kept.feed(text.encode("utf-8", "backslashreplace"))
        return len(text)

    def flush(self) -> None: ...

    def piece(self) -> Piece:
        with self._lock:
            return printed(*self._kept.parts())


_here: contextvars.ContextVar[CellOutput | None] = contextvars.ContextVar("cell_output", default=None)
_lock = threading.Lock()
_running = 0


class _Router:
    """A stream of the process, but for code that runs in a cell the cell's."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        output = _here.get()
        if output is not None:
            output.write(text)
        return self.stream.write(text) if output is None or output.passed_on else len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def captured(output: CellOutput) -> Generator[None]:
    """Send what this thread prints to `output`; threads that it starts print to the process's streams."""
    global _running
    with _lock:
        _running += 1
        for name in ("stdout", "stderr"):  # each time: somebody may have replaced them since the first cell began
            if not isinstance(stream := getattr(sys, name), _Router):
                setattr(sys, name, _Router(stream))
    token = _here.set(output)
    try:
        yield
    finally:
        _here.reset(token)
        with _lock:
            _running -= 1
            for name in ("stdout", "stderr") if _running == 0 else ():
                if isinstance(router := getattr(sys, name), _Router):
                    setattr(sys, name, router.stream)


@contextlib.contextmanager
def uncaptured() -> Generator[None]:
    """For a host tool: what it prints is not the cell's."""
    token = _here.set(None)
    try:
        yield
    finally:
        _here.reset(token)
