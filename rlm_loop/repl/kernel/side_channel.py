"""The unix socket between a session and its kernel: frames in both directions, jobs with their output pipes."""

from __future__ import annotations

import contextlib
import hmac
import select
import socket
from pathlib import Path

from rlm_loop.repl.host.outgoing import Outgoing
from rlm_loop.repl.worker import whole_lines


class Side:
    """The unix socket of one kernel: frames in both directions, jobs with their output pipes."""

    def __init__(self, path: Path, key: str) -> None:
        self._key = key.encode() + b"\n"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(1)
        self._sock: socket.socket | None = None
        self._out: Outgoing | None = None
        self._partial = bytearray()
        self.closed = False

    def fileno(self) -> int:
        return (self._sock or self._listener).fileno()

    def send(self, line: bytes, fd: int = -1) -> None:
        """Send a line, with a descriptor that is closed then, to the kernel that has connected."""
        assert self._out is not None
        self._out.send(line, fd)

    def readable(self) -> bool:
        """Whether `receive` would return at once."""
        return bool(select.select([self.fileno()], [], [], 0)[0])

    def receive(self) -> list[bytes]:
        """Whole lines that have come; sets `closed` at the end of the stream."""
        if self._sock is None:
            self._accept()
            return []
        data = b""
        with contextlib.suppress(OSError):
            data = self._sock.recv(1 << 16)
        self.closed = self.closed or not data
        return whole_lines(self._partial, data)

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
        self._sock, self._out = sock, Outgoing(sock)

    def close(self) -> None:
        self._listener.close()
        if self._out is not None:
            self._out.close()
