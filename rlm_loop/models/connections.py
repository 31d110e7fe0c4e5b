"""Connections of urllib3 that end with the scope of their call."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from typing import Any, cast

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from rlm_loop.accounting.scope import call_scope


class _Call:
    """A call under way: the socket that it uses, once it has one, and whether anybody still waits for the answer."""

    def __init__(self, once: bool) -> None:
        self.once = once
        self._socket: socket.socket | None = None
        self._ended = False
        self._lock = threading.Lock()

    def uses(self, connection: socket.socket) -> None:
        self._socket = connection
        if self._ended:
            self.hang_up()

    def hang_up(self) -> None:
        self._ended = True
        with self._lock:
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def done(self) -> None:
        """The answer is read: from now on the socket may serve another call."""
        with self._lock:
            self._socket = None


_under_way: ContextVar[_Call | None] = ContextVar("call_under_way", default=None)


@contextmanager
def ended_with_its_scope(once: bool = False) -> Generator[None]:
    """Hang up when nobody waits for the answer any more, so that a server does not go on writing it.

    That is so when the call's scope ends, and when Ctrl-C strikes in the call itself: its traceback, which a notebook
    keeps, would hold the connection open.  `once`: the connection serves no other call.
    """
    scope, call = call_scope.get(), _Call(once)
    token = _under_way.set(call)
    try:
        with nullcontext() if scope is None else scope.waking(call.hang_up):
            yield
    except BaseException as error:
        if not isinstance(error, Exception):
            call.hang_up()
        raise
    finally:
        _under_way.reset(token)


class _Watched(HTTPConnection):
    """A connection whose socket the call under way may hang up."""

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is None:  # pyright: ignore[reportUnnecessaryComparison]
            self.connect()
        if (call := _under_way.get()) is not None:
            call.uses(cast("socket.socket", self.sock))
        super().request(*args, **kwargs)


class _WatchedSecure(_Watched, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Watched  # pyright: ignore[reportAssignmentType]

    def _put_conn(self, conn: Any) -> None:
        if (call := _under_way.get()) is not None:
            call.done()
            if call.once and conn is not None:  # urllib3 gives back none where the connection failed
                conn.close()  # it opens again where it is used again
        super()._put_conn(conn)


class _SecurePool(_Pool, HTTPSConnectionPool):
    ConnectionCls = _WatchedSecure  # pyright: ignore[reportAssignmentType]


#: What a manager of urllib3 makes for each scheme.
POOLS: dict[str, type[HTTPConnectionPool]] = {"http": _Pool, "https": _SecurePool}
