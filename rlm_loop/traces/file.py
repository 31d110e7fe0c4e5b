"""A file that several writers append whole lines to: threads and processes take turns, a torn line stays on its own."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
import time
from io import FileIO
from pathlib import Path

#: Seconds that a writer waits for its turn.  Who holds it that long was stopped in the middle of a line; an append is
#: one write at the end of the file all the same, and nobody's run waits for another's for ever.
PATIENCE = 5.0


class LineFile:
    """Lines at the end of a file, each whole.  Raises `OSError` as opening and writing do."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._opened()
        self._lock = threading.Lock()
        self._resting = False
        self._end = 0  # where this one's latest line ended: the file needs no look where nobody else has written

    def append(self, lines: str) -> None:
        """Write lines, in one piece and at once.

        If they cannot be written whole, nothing of them is left where that can be had: what follows can be read.  Who
        comes after the file was closed (the thread of a call that nobody waited for) writes nothing.
        """
        data = lines.encode()
        with self._lock:
            if self._resting:
                self._file, self._resting = self._opened(), False
            if not self._file.closed:
                self._write(data)

    def rest(self) -> None:
        """Hold no descriptor until there is something to write again."""
        with self._lock:
            self._resting = self._resting or not self._file.closed
            self._file.close()

    def _opened(self) -> FileIO:
        if self._path.is_fifo():  # with nobody at its other end, a writer would wait for ever
            raise OSError(errno.EINVAL, "it is a pipe, not a file")
        return self._path.open("a+b", buffering=0)

    def _write(self, data: bytes) -> None:
        descriptor = self._file.fileno()
        held = _take(descriptor)
        try:
            size = os.fstat(descriptor).st_size
            if size and size != self._end and self._last(size) != b"\n":  # somebody was killed in the middle of a line
                data = b"\n" + data
            try:
                done = 0
                while done < len(data):
                    done += os.write(descriptor, data[done:] if done else data)
            except OSError:
                with contextlib.suppress(OSError):
                    self._file.truncate(size)
                raise
            self._end = size + len(data)
        finally:
            if held:
                with contextlib.suppress(OSError):
                    fcntl.flock(descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        with self._lock:
            self._resting = False
            self._file.close()

    def _last(self, size: int) -> bytes:
        self._file.seek(size - 1)  # where a line is written does not depend on it: the file is open for appending
        return self._file.read(1)


def _take(descriptor: int) -> bool:
    """Hold the turn to write, among all processes and all who opened the file; says whether it was had.

    It is not had on a file system without locks, and from one who never gives it back.
    """
    until = 0.0
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except (BlockingIOError, PermissionError):
            until = until or time.monotonic() + PATIENCE
            if time.monotonic() > until:
                return False
            time.sleep(0.0005)
        except OSError:
            return False
