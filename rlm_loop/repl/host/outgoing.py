"""Write frames and descriptors to one REPL; the host never waits for the REPL to read."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from array import array
from collections import deque
from collections.abc import Mapping
from typing import Any

_ONE_SEND = 32_768  # bytes that a socket takes wholly or not at all
_FLAGS = getattr(socket, "MSG_NOSIGNAL", 0)
_AT_ONCE = _FLAGS | getattr(socket, "MSG_DONTWAIT", 0)
_encode = json.JSONEncoder(separators=(",", ":")).encode  # made once, not for every frame


class Outgoing:
    """The way to one REPL.  Short frames go at once; long ones, and those behind them, go by a thread.

    So Ctrl-C, which strikes in the main thread, leaves no half frame behind, and a REPL that does not read stops
    nobody.  What cannot be sent since the REPL is gone is dropped.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._turns = threading.Lock()
        self._left: deque[tuple[bytes, list[Any], list[int]]] = deque()

    def send(self, frame: Mapping[str, Any], fds: list[int]) -> None:
        """Send a frame with descriptors, which are closed.  Safe from any thread."""
        data = (_encode(frame) + "\n").encode()
        enclosed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", fds))] if fds else []
        with self._turns:
            at_once = not self._left and len(data) <= _ONE_SEND
            if at_once:
                try:
                    self._sock.sendmsg([data], enclosed, _AT_ONCE)
                except BlockingIOError:
                    at_once = False
                except OSError:
                    pass
            if not at_once:
                self._left.append((data, enclosed, fds))
                if len(self._left) == 1:
                    threading.Thread(target=self._work, daemon=True).start()
                return
        for fd in fds:
            os.close(fd)

    def close(self) -> None:
        """Nothing is sent any more; a thread that waits for the REPL to read ends."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()

    def _work(self) -> None:
        while True:
            data, enclosed, fds = self._left[0]
            with contextlib.suppress(OSError):
                sent = self._sock.sendmsg([data], enclosed, _FLAGS)
                self._sock.sendall(memoryview(data)[sent:], _FLAGS)
            for fd in fds:
                os.close(fd)
            with self._turns:
                self._left.popleft()
                if not self._left:
                    return
