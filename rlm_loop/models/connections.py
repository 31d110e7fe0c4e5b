"""Kept-alive connections straight to one server, on the standard library's client.

That is a third of the work of a library which also knows of redirects, retries and proxies (see `proxied`), none of
which a call to a model on this machine or in this network has a use for.
"""

from __future__ import annotations

import select
import socket
import ssl
import weakref
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, cast

from rlm_loop.accounting.scope import call_scope
from rlm_loop.traces.received import parse, unpacked

#: So many connections are kept open; more are made where more calls are under way at once.
KEPT = 256
#: Bytes of an answer, unpacked.
LONGEST = 64 << 20


class TooLate(ConnectionError):
    """There was no connection, or no further data, in the time that was allowed."""


class Lost(ConnectionError):
    """The server cannot be reached, or went away in the middle."""


@dataclass(frozen=True)
class Response:
    """What a server answered; `headers` are looked up in any case."""

    status: int
    headers: Mapping[str, str]
    reason: str
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body read as JSON; raises `ValueError` where it is none (see `received.parse`)."""
        return parse(self.data)


class _InOnePiece(HTTPConnection):
    """Head and body leave in one packet, so that the server is not woken twice for a request."""

    def request(self, *args: Any, **kwargs: Any) -> None:
        self._parts: list[bytes] = []
        super().request(*args, **kwargs)
        with suppress(BrokenPipeError, ConnectionResetError):  # it may have said first why it reads no further
            super().send(b"".join(self._parts))

    def send(self, data: Any) -> None:
        self._parts.append(data)


class _InOnePieceSecure(_InOnePiece, HTTPSConnection):
    pass


class Connections:
    """Connections to `host`, from any thread.

    `connect` and `read` are seconds, for a connection and for each wait for data; `None` waits for ever.
    `certificates` is a file of those that are trusted, `None` for connections without TLS.  Raises `Lost` where it
    cannot be read.
    """

    def __init__(
        self, host: str, port: int | None, *, certificates: str | None, connect: float | None, read: float | None
    ) -> None:
        if certificates is None:
            self._new: Callable[[], HTTPConnection] = lambda: _InOnePiece(host, port or 80, timeout=connect)
        else:
            trusted = _trusting(certificates)
            self._new = lambda: _InOnePieceSecure(host, port or 443, timeout=connect, context=trusted)
        self._read = read
        self._free: list[HTTPConnection] = []  # appending and popping need no lock
        weakref.finalize(self, _close, self._free)

    def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, timeout: float | None = None
    ) -> Response:
        """What the server answers; `timeout` seconds stand for both of the limits.  Raises `TooLate` and `Lost`."""
        connection = self._kept() or self._new()
        try:
            connection.timeout = connection.timeout if timeout is None else timeout
            if connection.sock is None:
                connection.connect()
            connection.sock.settimeout(self._read if timeout is None else timeout)  # pyright: ignore
            with _while_wanted(connection.sock):
                connection.request(method, path, body=body, headers=headers)
                answer = connection.getresponse()
                data = _body(answer)
            if answer.headers.get("Content-Encoding", "").lower() == "gzip":
                data = unpacked(data, LONGEST)
        except TimeoutError as error:
            connection.close()
            raise TooLate(str(error)) from error
        except (OSError, HTTPException) as error:
            connection.close()
            raise Lost(str(error)) from error
        except BaseException:  # Ctrl-C: what is left of the answer would be taken for the next one
            connection.close()
            raise
        if answer.will_close or len(self._free) >= KEPT:
            connection.close()
        else:
            self._free.append(connection)
        return Response(answer.status, cast("Mapping[str, str]", answer.headers), answer.reason, data)

    def close(self) -> None:
        """Close those that are kept; a later call opens new ones."""
        _close(self._free)

    def _kept(self) -> HTTPConnection | None:
        """A connection on which the server has not hung up meanwhile."""
        with suppress(IndexError):
            while True:
                connection = self._free.pop()
                if connection.sock is not None and _silent(connection.sock):
                    return connection
                connection.close()
        return None


def _body(answer: HTTPResponse) -> bytes:
    """What was sent; raises `OSError` beyond `LONGEST`, before it is held."""
    if answer.length is not None and answer.length <= LONGEST:
        return answer.read()
    pieces: list[bytes] = []
    size = answer.length or 0
    while size <= LONGEST and (piece := answer.read(1 << 20)):
        pieces.append(piece)
        size += len(piece)
    if size > LONGEST:
        raise OSError(f"it sent more than {LONGEST:,} bytes")
    return b"".join(pieces)


def _trusting(certificates: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=certificates)
    except OSError as error:
        raise Lost(f"the certificates in {certificates} cannot be read: {error}") from error


def _while_wanted(connection: socket.socket | None) -> AbstractContextManager[None]:
    """Hang up when nobody waits for the answer any more, so that a server does not go on writing it."""

    def hang_up() -> None:
        with suppress(OSError):
            assert connection is not None
            connection.shutdown(socket.SHUT_RDWR)

    scope = call_scope.get()
    return nullcontext() if scope is None or connection is None else scope.waking(hang_up)


def _silent(connection: socket.socket) -> bool:
    """Nothing has come: an end of the stream would be something to read."""
    if not hasattr(select, "poll"):  # Windows
        return not select.select([connection], [], [], 0)[0]
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return not poll.poll(0)


def _close(connections: list[HTTPConnection]) -> None:
    with suppress(IndexError):
        while True:
            connections.pop().close()
