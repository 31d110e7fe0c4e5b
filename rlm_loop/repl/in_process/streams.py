"""Output of code that runs in this process, told apart from what everything else in it prints.

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

from rlm_loop.repl.text import RECORD_CAP, Piece, shown


class CellOutput:
    """The text that one cell printed: its beginning and its end, when it is long.

    One that is `passed_on` goes to the process's stream as well: the text that a tool of the host printed.
    """

    def __init__(self, cap: int, *, passed_on: bool = False) -> None:
        self.passed_on = passed_on
        self._most = max(cap, RECORD_CAP)
        self._head, self._dropped = "", 0
        self._parts: list[str] = []  # behind the head
        self._held = 0
        self._lock = threading.Lock()

    def write(self, text: str) -> int:
        with self._lock:
            self._parts.append(text.encode("utf-8", "backslashreplace").decode())
            self._held += len(self._parts[-1])
            if self._held > 4 * self._most:
                self._shorten()
        return len(text)

    def _shorten(self) -> None:
        text = "".join(self._parts)
        room = self._most - len(self._head)
        self._head, text = self._head + text[:room], text[room:]
        tail = text[-self._most :]
        self._dropped += len(text) - len(tail)
        self._parts, self._held = [tail], len(tail)

    def flush(self) -> None: ...

    def piece(self) -> Piece:
        """Return what was printed until now, as a terminal would show it."""
        with self._lock:
            self._shorten()
            tail = self._parts[0]
        return (
            Piece(shown(self._head), self._dropped, shown(tail)) if self._dropped else Piece(shown(self._head + tail))
        )


_output: contextvars.ContextVar[CellOutput | None] = contextvars.ContextVar("cell_output", default=None)
_lock = threading.Lock()
_running = 0


class _Router:
    """A stream of the process, but for code that runs in a cell the cell's."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        output = _output.get()
        if output is not None:
            output.write(text)
        return self.stream.write(text) if output is None or output.passed_on else len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def captured(output: CellOutput | None) -> Generator[None]:
    """Send what this thread prints to `output`; None is for a host tool within a cell, and threads are not followed."""
    global _running
    with _lock:
        _running += 1
        for name in ("stdout", "stderr"):  # each time: somebody may have replaced them since the first cell began
            if not isinstance(stream := getattr(sys, name), _Router):
                setattr(sys, name, _Router(stream))
    token = _output.set(output)
    try:
        yield
    finally:
        _output.reset(token)
        with _lock:
            _running -= 1
            for name in ("stdout", "stderr") if _running == 0 else ():
                if isinstance(router := getattr(sys, name), _Router):
                    setattr(sys, name, router.stream)
