"""Write frames and descriptors to one REPL; the host never waits for the REPL to read."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections import deque

from rlm_loop.repl.worker import enclosing

_ONE_SEND = 32_768  # bytes that a socket takes wholly or not at all
_FLAGS = getattr(socket, "MSG_NOSIGNAL", 0)
AT_ONCE = _FLAGS | getattr(socket, "MSG_DONTWAIT", 0)


class Outgoing:
    """The way to one REPL.  Short frames go at once; long ones, and those behind them, go by a thread.

    So Ctrl-C, which strikes in the main thread, leaves no half frame behind, and a REPL that does not read stops
    nobody.  What cannot be sent since the REPL is gone is dropped.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._turns = threading.Lock()
        self._left: deque[tuple[bytes, int]] = deque()

    def send(self, data: bytes, fd: int = -1) -> None:
        """Send, and close the descriptor.  Safe from any thread."""
        with self._turns:
            if not self._left and len(data) <= _ONE_SEND:
                try:
                    if fd < 0:
                        self._sock.send(data, AT_ONCE)
                    else:
                        self._sock.sendmsg([data], enclosing(fd), AT_ONCE)
                        os.close(fd)
                except BlockingIOError:
                    pass
                except OSError:
                    close_all(fd)
                    return
                else:
                    return
            self._left.append((data, fd))
            if len(self._left) == 1:
                threading.Thread(target=self._work, daemon=True).start()

    def close(self) -> None:
        """Nothing is sent any more; a thread that waits for the REPL to read ends."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()

    def _work(self) -> None:
        while True:
            data, fd = self._left[0]
            with contextlib.suppress(OSError):
                view = memoryview(data)
                if fd >= 0:
                    view = view[self._sock.sendmsg([view], enclosing(fd), _FLAGS) :]
                self._sock.sendall(view, _FLAGS)
            close_all(fd)
            with self._turns:
                self._left.popleft()
                if not self._left:
                    return


def close_all(*descriptors: int) -> None:
    """Close those that there are; -1 stands for none."""
    for fd in descriptors:
        if fd >= 0:
            with contextlib.suppress(OSError):
                os.close(fd)
