"""JSON over kept-alive connections to one server: straight to it, or by the environment's proxy."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import unquote
from urllib.request import getproxies, proxy_bypass

import certifi
import urllib3
from urllib3 import HTTPHeaderDict
from urllib3.exceptions import ConnectTimeoutError, HTTPError, LocationParseError, NewConnectionError, ReadTimeoutError
from urllib3.util import parse_url

from rlm_loop.models.connections import POOLS, ended_with_its_scope
from rlm_loop.models.responses import LONGEST, BadAddress, BrokenOff, Lost, Response, TooLate
from rlm_loop.traces.received import unpacked

#: So many connections are kept open; more are made where more calls are under way at once.
KEPT = 256


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
        try:
            place = parse_url(base_url)
            host = place.host or ""
            host.encode("idna")  # no name has a label of more than 63 characters
        except (LocationParseError, UnicodeError) as error:
            raise BadAddress(base_url) from error
        if place.scheme not in ("http", "https") or not host:
            raise BadAddress(base_url)
        own = {"Accept-Encoding": "gzip", "Content-Type": "application/json", "User-Agent": "rlm-loop"}
        if place.auth:
            own |= {"Authorization": urllib3.make_headers(basic_auth=unquote(place.auth))["authorization"]}
        self.base_url = base_url
        self._headers = {**own, **headers}
        settings: dict[str, Any] = {"maxsize": KEPT, "ssl_context": _trusting() if place.scheme == "https" else None}
        settings["timeout"] = urllib3.Timeout(None if timeout is None else min(timeout, 20.0), timeout)
        proxy = getproxies().get(place.scheme) if proxies and not proxy_bypass(host) else None
        self._manager = urllib3.PoolManager(**settings) if proxy is None else _by(proxy, settings)
        self._manager.pool_classes_by_scheme = POOLS
        self._server, self._path, self._direct = f"{place.scheme}://{place.netloc}", place.path or "", proxy is None
        self._open = self._opener()

    def post(
        self,
        path: str,
        body: Mapping[str, Any] | str,
        heard: Callable[[bytes], None] | None = None,
        timeout: float | None = None,
    ) -> Response:
        """Send an object to `path` below the address, as JSON; a text is JSON already.

        `heard` is given the pieces of an answer of no stated length as they come; the response has them all.  `timeout`
        replaces the client's, in seconds.

        Raises `UnicodeEncodeError` for a body that is no valid text, `TooLate` and `Lost`.
        """
        if not isinstance(body, str):
            body = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        own: dict[str, Any] = {} if timeout is None else {"timeout": timeout}
        return self._ask("POST", path, heard, body=body.encode(), **own)

    def get(self, path: str, timeout: float | None = None) -> Response:
        """Ask for `path` below the address, for `timeout` seconds where it is given.  Raises `TooLate` and `Lost`."""
        return self._ask("GET", path, None, **({} if timeout is None else {"timeout": timeout}))

    @contextmanager
    def relay(
        self, method: str, path: str, headers: HTTPHeaderDict, body: bytes | None
    ) -> Generator[urllib3.BaseHTTPResponse]:
        """The answer to a request with these header fields and no others, not yet read.

        Raises `TooLate` and `Lost`, while the answer is read as well; what is not read to its end hangs up.
        """
        options: dict[str, Any] = {"retries": False, "redirect": False, "preload_content": False}
        answer: urllib3.BaseHTTPResponse | None = None
        try:
            with ended_with_its_scope():
                answer = self._open(
                    method, path if self._direct else self._server + path, body=body, headers=headers, **options
                )
                yield cast("urllib3.BaseHTTPResponse", answer)
        except HTTPError as error:
            raise _lost(error) from error
        finally:
            if answer is not None:
                answer.close()

    def close(self) -> None:
        """Close the connections that are kept; a later call opens new ones."""
        self._manager.clear()
        self._open = self._opener()

    def _opener(self) -> Any:
        """What sends a request: the server's own pool, since a manager reads the address anew for each request."""
        return self._manager.connection_from_url(self._server).urlopen if self._direct else self._manager.urlopen

    def _ask(self, method: str, path: str, heard: Callable[[bytes], None] | None, **more: Any) -> Response:
        options: dict[str, Any] = {"retries": False, "redirect": False, "preload_content": False}
        address = self._path + path if self._direct else self._server + self._path + path
        headers = self._headers if heard is None else {**self._headers, "Accept-Encoding": "identity"}
        answer: urllib3.HTTPResponse | None = None
        try:
            # llama.cpp closes a connection after a stream without saying so: the next call would find it dead
            with ended_with_its_scope(once=heard is not None):
                answer = cast("urllib3.HTTPResponse", self._open(method, address, headers=headers, **options, **more))
                data = _body(answer, heard)
            if answer.headers.get("Content-Encoding", "").lower() == "gzip":
                data = unpacked(data, LONGEST)
        except (HTTPError, OSError) as error:
            lost = _lost(error)
            gone = answer is not None and isinstance(error, HTTPError) and not isinstance(lost, TooLate)
            raise (BrokenOff(str(lost)) if gone else lost) from error
        return Response(answer.status, answer.headers, answer.reason or "", data)


def _lost(error: BaseException) -> TooLate | Lost:
    """Why there is no answer, with the reason below urllib3's own words."""
    inner = next((a for a in error.args if isinstance(a, BaseException)), None) or error.__cause__ or error
    late = isinstance(error, ConnectTimeoutError | ReadTimeoutError) or isinstance(inner, TimeoutError)
    # a refused connection is a kind of timeout there, for history's sake
    kind = TooLate if late and not isinstance(error, NewConnectionError) else Lost
    return kind(str(inner))


def _body(answer: urllib3.HTTPResponse, heard: Callable[[bytes], None] | None = None) -> bytes:
    """What was sent, as it was sent; raises `OSError` beyond `LONGEST`, before it is held."""
    size, pieces = 0, list[bytes]()
    length = answer.length_remaining
    if length is not None and length <= LONGEST:
        return answer.read(decode_content=False)
    if length is None:
        for piece in answer.stream(1 << 20, decode_content=False) if heard is None else _as_it_comes(answer):
            if heard is not None:
                heard(piece)
            pieces.append(piece)
            size += len(piece)
            if size > LONGEST:
                break
        else:
            return b"".join(pieces)
    answer.close()
    raise OSError(f"it sent more than {LONGEST:,} bytes")


def _as_it_comes(answer: urllib3.HTTPResponse) -> Iterator[bytes]:
    """The pieces of an answer without waiting for a full one."""
    if answer.chunked:
        yield from answer.read_chunked(decode_content=False)
    while not answer.chunked and (piece := answer.read1(decode_content=False)):
        yield piece


def _by(proxy: str, settings: dict[str, Any]) -> urllib3.ProxyManager:
    try:
        auth = parse_url(proxy).auth
        settings["proxy_headers"] = urllib3.make_headers(proxy_basic_auth=unquote(auth)) if auth else None
        return urllib3.ProxyManager(proxy, proxy_ssl_context=settings["ssl_context"], **settings)
    except (HTTPError, ValueError) as error:  # a SOCKS proxy, or no address
        raise Lost(f"the environment's proxy cannot be used: {error}") from error


def _trusting() -> ssl.SSLContext:
    certificates = os.environ.get("SSL_CERT_FILE") or certifi.where()
    try:
        return ssl.create_default_context(cafile=certificates)
    except OSError as error:
        raise Lost(f"the certificates in {certificates} cannot be read: {error}") from error
