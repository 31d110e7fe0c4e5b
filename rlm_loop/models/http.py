"""HTTP to one server, a connection for each call."""

from __future__ import annotations

import socket
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from rlm_loop.accounting.scope import call_scope
from rlm_loop.traces.redact import redact

#: Bytes of an answer.
LONGEST = 64 << 20
#: Seconds for making a connection.
CONNECTING = 20.0


class Lost(ConnectionError):
    """The server cannot be reached, or went away."""


class Answer:
    """An answer of a server; `data` is its body, once it was read."""

    def __init__(self, response: HTTPResponse) -> None:
        self._response = response
        self.status, self.reason, self.headers = response.status, response.reason, response.headers
        self.data = b""

    def pieces(self) -> Iterator[bytes]:
        """Yield the body as it comes.  Raises `Lost`."""
        try:
            while piece := self._response.read1(1 << 16):
                yield piece
        except (HTTPException, OSError) as error:
            raise Lost(str(error) or type(error).__name__) from error
        if self._response.length:
            raise Lost(f"{self._response.length:,} bytes are missing")

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


class Http:
    """A client of the server at `base_url`, from any thread.

    `timeout` is in seconds, for each wait for data, and at most 20 of them for the connection; `None` waits for ever.
    An `https` address is reached by the environment's `HTTPS_PROXY`, where there is one.  Certificates are checked
    against those of the system, or the file in `SSL_CERT_FILE`.  Redirects are not followed.
    Raises `ValueError` for what is no address of a server.
    """

    def __init__(self, base_url: str, *, headers: Mapping[str, str], timeout: float | None) -> None:
        place = urlsplit(base_url)
        if place.scheme not in ("http", "https") or not place.hostname or place.username:
            raise ValueError(f"base_url must be http(s)://HOST[:PORT][/PATH] without a user, got {redact(base_url)!r}")
        self._secure, self._path = place.scheme == "https", place.path
        self._at = place.hostname, place.port or (443 if self._secure else 80)
        own = {"Accept-Encoding": "identity", "Content-Type": "application/json", "User-Agent": "rlm-loop"}
        self._headers = {**own, **headers}
        self._timeout = timeout

    def send(self, path: str, body: str | None = None, heard: Callable[[bytes], object] = bool) -> Answer:
        """Post JSON to `path` below the address (without a body: get what is there), and read the answer to its end.

        `heard` is given the pieces as they come.
        Raises `UnicodeEncodeError` for a body that is no valid text, and `Lost`.
        """
        data, read = None if body is None else body.encode(), bytearray()
        method, headers = "GET" if data is None else "POST", self._headers.items()
        with self.asking(method, self._path + path, headers, data) as answer:
            for piece in answer.pieces():
                read += piece
                if len(read) > LONGEST:
                    raise Lost(f"it sent more than {LONGEST:,} bytes")
                heard(piece)
        answer.data = bytes(read)
        return answer

    @contextmanager
    def asking(
        self, method: str, path: str, headers: Iterable[tuple[str, str]], body: bytes | None
    ) -> Generator[Answer]:
        """Send a request with these header fields; yield the answer, whose body is not read yet.

        When the call's scope ends, or Ctrl-C strikes, the connection is shut down, so that the server does not go on
        writing for nobody.  Raises `Lost`.
        """
        scope, connection = call_scope.get(), self._connection()
        line: socket.socket | None = None
        response: HTTPResponse | None = None

        def hang_up() -> None:
            if line is not None:
                with suppress(OSError):  # closed by now
                    line.shutdown(socket.SHUT_RDWR)

        try:
            with nullcontext() if scope is None else scope.waking(hang_up):
                try:
                    connection.connect()
                    line = cast("socket.socket", connection.sock)
                    if scope is not None and scope.ended:
                        raise OSError(scope.reason)
                    line.settimeout(self._timeout)
                    connection.putrequest(method, path, skip_accept_encoding=True)
                    for name, value in headers:
                        connection.putheader(name, value)
                    if body is not None:
                        connection.putheader("Content-Length", str(len(body)))
                    connection.endheaders(body)
                    response = connection.getresponse()
                except (HTTPException, OSError, ValueError) as error:
                    raise Lost(str(error) or type(error).__name__) from error
                yield Answer(response)
        except BaseException:
            hang_up()  # the traceback, which a notebook keeps, would hold the connection open
            raise
        finally:
            connection.close()
            if response is not None:
                response.close()

    def _connection(self) -> HTTPConnection:
        seconds = CONNECTING if self._timeout is None else min(self._timeout, CONNECTING)
        if not self._secure:
            return HTTPConnection(*self._at, timeout=seconds)
        proxy = "" if proxy_bypass(self._at[0]) else getproxies().get("https", "")
        if not proxy:
            return HTTPSConnection(*self._at, timeout=seconds)
        place = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        connection = HTTPSConnection(place.hostname or "", place.port or 80, timeout=seconds)
        connection.set_tunnel(*self._at)
        return connection
