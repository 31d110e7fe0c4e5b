"""HTTP to one server, a connection for each call: straight to it, or by the environment's proxy."""

from __future__ import annotations

import base64
import json
import os
import socket
import ssl
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from email.message import Message
from functools import lru_cache
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, cast
from urllib.parse import SplitResult, quote, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from rlm_loop.accounting.scope import call_scope
from rlm_loop.traces.received import parse, unpacked

#: Bytes of an answer, unpacked.
LONGEST = 64 << 20
#: Seconds for making a connection.
CONNECTING = 20.0


class BadAddress(ValueError):
    """The address does not begin with `http://` or `https://`, or names no host."""


class TooLate(ConnectionError):
    """There was no connection, or no further data, in the time that was allowed."""


class Lost(ConnectionError):
    """The server cannot be reached, or went away."""


class BrokenOff(Lost):
    """The server went away in the middle of its answer."""


@dataclass(frozen=True)
class Response:
    """An answer of a server, read to its end."""

    status: int
    headers: Message[str, str]
    reason: str
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    def json(self) -> Any:
        """Read the body as JSON; raises `ValueError` where it is none (see `received.parse`)."""
        return parse(self.data)


class Answer:
    """An answer whose body is still to be read."""

    def __init__(self, response: HTTPResponse) -> None:
        self._response = response
        self.status, self.reason, self.headers = response.status, response.reason, response.headers

    def pieces(self) -> Iterator[bytes]:
        """Yield the body as it comes, not unpacked.  Raises `TooLate` and `BrokenOff`."""
        try:
            while piece := self._response.read1(1 << 16):
                yield piece
        except (HTTPException, OSError) as error:
            raise _lost(error, BrokenOff) from error
        if self._response.length:
            raise BrokenOff(f"{self._response.length:,} bytes are missing")
        self._response.close()


class Http:
    """A client of the server at `base_url`, from any thread.

    `timeout` is in seconds, for each wait for data, and at most 20 of them for the connection; `None` waits for ever.
    A user and password in the address become its `Authorization`, where `headers` have none.  With `proxies` those
    of the environment are used (`HTTPS_PROXY`, `NO_PROXY` and so on).  Certificates are checked against the file in
    `SSL_CERT_FILE`, else those of certifi.  Redirects are not followed.  Raises `BadAddress`, and `Lost` where the
    proxy or the certificates cannot be used.
    """

    def __init__(
        self, base_url: str, *, headers: Mapping[str, str], timeout: float | None, proxies: bool = True
    ) -> None:
        place = _address(base_url)
        own = {"Accept-Encoding": "gzip", "Content-Type": "application/json", "User-Agent": "rlm-loop"}
        self.base_url = base_url
        self._headers = {**own, **_authorization("Authorization", place), **headers}
        self._timeout = timeout
        self._path = quote(place.path, safe="%/:@!$&'()*+,;=~")
        self._trusted = _trusted_certificates(_certificates()) if place.scheme == "https" else None
        self._at = place.hostname or "", place.port or (443 if self._trusted else 80)
        proxy = getproxies().get(place.scheme) if proxies and not proxy_bypass(self._at[0]) else None
        self._proxy = None if proxy is None else _proxy(proxy)
        self._at_proxy = {} if self._proxy is None else _authorization("Proxy-Authorization", self._proxy)
        asks_proxy = self._proxy is not None and self._trusted is None
        #: Of each request to a proxy that reads it: the server, and what the proxy asks for.
        self._server = f"http://{place.netloc.rpartition('@')[2]}" if asks_proxy else ""
        self._in_front = self._at_proxy if asks_proxy else {}

    def post(
        self,
        path: str,
        body: Mapping[str, Any] | str,
        heard: Callable[[bytes], None] | None = None,
        timeout: float | None = None,
    ) -> Response:
        """Send an object to `path` below the address, as JSON; a text is JSON already.

        `heard` is given the pieces of an answer as they come; the response has them all.  `timeout` replaces the
        client's, in seconds.

        Raises `UnicodeEncodeError` for a body that is no valid text, `TooLate` and `Lost`.
        """
        if not isinstance(body, str):
            body = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        headers = self._headers if heard is None else {**self._headers, "Accept-Encoding": "identity"}
        with self.asking("POST", self._path + path, headers.items(), body.encode(), timeout) as answer:
            return _read(answer, heard or (lambda _: None))

    def get(self, path: str, timeout: float | None = None) -> Response:
        """Ask for `path` below the address, for `timeout` seconds where it is given.  Raises `TooLate` and `Lost`."""
        with self.asking("GET", self._path + path, self._headers.items(), None, timeout) as answer:
            return _read(answer, lambda _: None)

    @contextmanager
    def asking(
        self,
        method: str,
        path: str,
        headers: Iterable[tuple[str, str]],
        body: bytes | None,
        timeout: float | None = None,
    ) -> Generator[Answer]:
        """Send a request with these header fields; yield the answer, whose body is not read yet.

        When the call's scope ends, or Ctrl-C strikes, the connection is shut down, so that the server does not go on
        writing for nobody.

        Raises `TooLate` and `Lost`.
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
                        raise Lost(scope.reason)
                    line.settimeout(self._timeout if timeout is None else timeout)
                    connection.putrequest(method, self._server + path, skip_accept_encoding=True)
                    for name, value in (*headers, *self._in_front.items()):
                        connection.putheader(name, value)
                    if body is not None:
                        connection.putheader("Content-Length", str(len(body)))
                    connection.endheaders(body)
                    response = connection.getresponse()
                except (HTTPException, OSError, ValueError) as error:
                    raise _lost(error, Lost) from error
                yield Answer(response)
        except BaseException:
            hang_up()  # the traceback, which a notebook keeps, would hold the connection open
            raise
        finally:
            connection.close()
            if response is not None:
                response.close()

    def _connection(self) -> HTTPConnection:
        host, port = self._at if self._proxy is None else (self._proxy.hostname or "", self._proxy.port or 80)
        seconds = CONNECTING if self._timeout is None else min(self._timeout, CONNECTING)
        if self._trusted is None:
            return HTTPConnection(host, port, timeout=seconds)
        connection = HTTPSConnection(host, port, timeout=seconds, context=self._trusted)
        if self._proxy is not None:
            connection.set_tunnel(*self._at, headers=self._at_proxy)
        return connection


def _read(answer: Answer, heard: Callable[[bytes], None]) -> Response:
    """Read an answer to its end, `LONGEST` bytes at most.  Raises `TooLate` and `Lost`."""
    pieces, left = list[bytes](), LONGEST
    for piece in answer.pieces():
        pieces.append(piece)
        left -= len(piece)
        if left < 0:
            raise Lost(f"it sent more than {LONGEST:,} bytes")
        heard(piece)
    data = b"".join(pieces)
    if answer.headers.get("Content-Encoding", "").lower() == "gzip":
        try:
            data = unpacked(data, LONGEST)
        except OSError as error:
            raise BrokenOff(str(error)) from error
    return Response(answer.status, answer.headers, answer.reason, data)


def _lost(error: BaseException, kind: type[Lost]) -> TooLate | Lost:
    if isinstance(error, Lost):
        return error
    return (TooLate if isinstance(error, TimeoutError) else kind)(str(error) or type(error).__name__)


def _address(url: str) -> SplitResult:
    try:
        place = urlsplit(url)
        (place.hostname or "").encode("idna")  # no name has a label of more than 63 characters
        if place.scheme in ("http", "https") and place.hostname and place.port != 0:
            return place
    except ValueError as error:
        raise BadAddress(url) from error
    raise BadAddress(url)


def _proxy(url: str) -> SplitResult:
    try:
        place = _address(url if "://" in url else f"http://{url}")
        if place.scheme == "http":
            return place
    except BadAddress:
        pass
    raise Lost("the environment's proxy cannot be used: it begins with http://")


def _authorization(field: str, place: SplitResult) -> dict[str, str]:
    if place.username is None:
        return {}
    pair = f"{unquote(place.username)}:{unquote(place.password or '')}"
    return {field: f"Basic {base64.b64encode(pair.encode()).decode()}"}


@lru_cache(maxsize=4)
def _trusted_certificates(file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:
        raise Lost(f"the certificates in {file} cannot be read: {error}") from error


def _certificates() -> str:
    import certifi

    return os.environ.get("SSL_CERT_FILE") or certifi.where()
