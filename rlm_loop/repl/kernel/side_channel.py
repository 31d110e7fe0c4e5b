"""The unix socket between a session and its kernel: frames in both directions, and descriptors of output pipes."""

from __future__ import annotations

import array
import contextlib
import hmac
import queue
import select
import socket
import threading
from pathlib import Path


class Side:
    """The unix socket of one kernel: frames in both directions, and descriptors of output pipes."""

    def __init__(self, path: Path, key: str) -> None:
        self._key = key.encode() + b"\n"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(1)
        self._sock: socket.socket | None = None
        self._partial = bytearray()
        # Written by a thread of its own: the kernel reads only when it has a use for it, and nobody may wait for that.
        self._out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.closed = False

    def fileno(self) -> int:
        return (self._sock or self._listener).fileno()

    def send(self, line: bytes) -> None:
        self._out.put(line)

    def readable(self) -> bool:
        """Whether `receive` would return at once."""
        return bool(select.select([self.fileno()], [], [], 0)[0])

    def receive(self) -> tuple[list[bytes], list[int]]:
        """Whole lines and descriptors that have come; sets `closed` at the end of the stream."""
        if self._sock is None:
            self._accept()
            return [], []
        fds = array.array("i")
        try:
            data, extra, _, _ = self._sock.recvmsg(1 << 16, socket.CMSG_SPACE(16 * fds.itemsize))
        except OSError:
            data, extra = b"", []
        for level, kind, payload in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(payload[: len(payload) // fds.itemsize * fds.itemsize])
        self.closed = self.closed or not data
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = bytes(self._partial) + lines[0]
            self._partial.clear()
        self._partial += rest
        return lines, list(fds)

    def _accept(self) -> None:
        sock, _ = self._listener.accept()
        sock.settimeout(5)
        said = b""
        with contextlib.suppress(OSError):
            while len(said) < len(self._key) and (more := sock.recv(len(self._key) - len(said))):
                said += more
        if not hmac.compare_digest(said, self._key):
            sock.close()
            return
        sock.settimeout(None)
        self._sock = sock
        threading.Thread(target=self._write, args=(sock,), daemon=True).start()

    def _write(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while (line := self._out.get()) is not None:
                sock.sendall(line)

    def close(self) -> None:
        self._out.put(None)
        self._listener.close()
        if self._sock is not None:
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)  # wakes a writer
            self._sock.close()
