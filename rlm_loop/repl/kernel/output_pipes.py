"""The read ends of cells' output pipes, where the host itself reads them."""

from __future__ import annotations

import os
from typing import Any

from rlm_loop.repl.worker import Capture


class OutputPipes:
    """Each cell has a pipe of its own; one that a left-behind process still holds is read and dropped to its end."""

    def __init__(self, cap: int, poller: Any) -> None:
        import zmq

        self._cap, self._poller, self._readable = cap, poller, zmq.POLLIN
        self._open: dict[int, Capture] = {}
        self._current: Capture | None = None

    def __contains__(self, fd: object) -> bool:
        return fd in self._open

    def start(self, fd: int) -> None:
        """A cell began: what is read from now on is its output."""
        for old in list(self._open):
            self.read(old)
        os.set_blocking(fd, False)
        self._current = self._open[fd] = Capture(fd, self._cap)
        self._poller.register(fd, self._readable)

    def read(self, fd: int) -> None:
        """Take what is there."""
        if self._open[fd].read():
            self._forget(fd)

    def end(self) -> dict[str, Any] | None:
        """The cell is over; the `out` frame of what it printed, if it did."""
        capture, self._current = self._current, None
        if capture is None:
            return None
        if capture.fd in self._open:
            self.read(capture.fd)
        capture.live = False
        return capture.frame() if capture.head else None

    def close(self) -> None:
        for fd in list(self._open):
            self._forget(fd)

    def _forget(self, fd: int) -> None:
        del self._open[fd]
        self._poller.unregister(fd)
        os.close(fd)
