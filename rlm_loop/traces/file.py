"""A file that threads and processes append whole lines to, each by one write."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from pathlib import Path


class LineFile:
    """Lines at the end of a file, which is open only while one is written.  Raises `OSError`."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._path.is_fifo():  # without a reader, opening it never returns
            raise OSError(errno.EINVAL, "it is a pipe, not a file")
        self._path.open("ab").close()
        self._lock = threading.Lock()
        self._closed = False
        self._end = 0  # where the latest line of this writer ended

    def append(self, lines: str) -> None:
        """Write lines at once, or nothing of them; after `close`, nothing."""
        data = lines.encode()
        with self._lock, contextlib.ExitStack() as stack:
            if self._closed:
                return
            file = stack.enter_context(self._path.open("a+b", buffering=0))
            size = os.fstat(file.fileno()).st_size
            if size and size != self._end:
                file.seek(size - 1)
                if file.read(1) != b"\n":  # another writer was killed within a line
                    data = b"\n" + data
            try:
                done = 0
                while done < len(data):
                    done += file.write(data[done:] if done else data)
            except OSError:
                with contextlib.suppress(OSError):
                    file.truncate(size)
                raise
            self._end = size + len(data)

    def close(self) -> None:
        with self._lock:
            self._closed = True
