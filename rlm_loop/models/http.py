"""JSON over kept-alive connections to one server, on urllib3: half of what a general client costs for each call."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from urllib.request import getproxies, proxy_bypass

if TYPE_CHECKING:
    import urllib3

#: So many connections are kept open; more are made where more calls are under way at once.
KEPT = 256


class BadAddress(ValueError):
    """No address that can be asked: it begins with `http://` or `https://` and names a host."""


class TooLate(ConnectionError):
    """There was no connection, or no further data, in the time that was allowed."""


class Lost(ConnectionError):
    """The server cannot be reached, or went away in the middle."""


class Response:
    """What a server answered; `headers` are looked up in any case."""

    def __init__(self, found: urllib3.BaseHTTPResponse) -> None:
        self.status = found.status
        self.headers: Mapping[str, str] = found.headers
        self.reason = found.reason or ""
        self.data = found.data

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body read as JSON; raises `ValueError` where it is none."""
        return json.loads(self.data)


class Http:
    """A client of the server at `base_url`, from any thread.

    `timeout` is in seconds, for each wait for data, and at most 20 of them for the connection; `None` waits for ever.
    A user and password in the address become its `Authorization`, where `headers` have none.  With `proxies` those
    of the environment are used (`HTTPS_PROXY`, `NO_PROXY` and so on).  Certificates are checked against the file in
    `SSL_CERT_FILE`, else those of certifi.  Redirects are not followed.  Raises `BadAddress`.
    """

    def __init__(
        self, base_url: str, *, headers: Mapping[str, str], timeout: float | None, proxies: bool = True
    ) -> None:
        import urllib3
        from urllib3.exceptions import LocationParseError
        from urllib3.util import parse_url

        try:
            place = parse_url(base_url)
        except LocationParseError as error:
            raise BadAddress(base_url) from error
        if place.scheme not in ("http", "https") or not place.host:
            raise BadAddress(base_url)
        own = {"Accept-Encoding": "gzip, deflate", "Content-Type": "application/json", "User-Agent": "rlm-loop"}
        if place.auth:
            own |= {"Authorization": urllib3.make_headers(basic_auth=unquote(place.auth))["authorization"]}
        self.base_url = base_url
        self._headers = {**own, **headers}
        limits: dict[str, Any] = {
            "maxsize": KEPT,
            "timeout": urllib3.Timeout(connect=None if timeout is None else min(timeout, 20.0), read=timeout),
        }
        if place.scheme == "https":
            limits["ca_certs"] = os.environ.get("SSL_CERT_FILE") or _certificates()
        proxy = getproxies().get(place.scheme) if proxies and not proxy_bypass(place.host) else None
        self._path = place.path or ""
        if proxy is None:
            self._manager: urllib3.PoolManager | None = None
            self._pool = urllib3.connection_from_url(f"{place.scheme}://{place.netloc}", **limits)
        else:
            self._manager = _by_proxy(proxy, limits)
            self._pool = None
            self._path = f"{place.scheme}://{place.netloc}{self._path}"

    def post(self, path: str, body: Any) -> Response:
        """Send JSON to `path` below the address.

        Raises `UnicodeEncodeError` for a body that is no valid text, `TooLate` and `Lost`.
        """
        sent = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        return self._ask("POST", path, body=sent)

    def get(self, path: str, timeout: float | None = None) -> Response:
        """Ask for `path` below the address, for `timeout` seconds where it is given.  Raises `TooLate` and `Lost`."""
        return self._ask("GET", path, **({} if timeout is None else {"timeout": timeout}))

    def close(self) -> None:
        """Close the connections that are kept; a later call opens new ones."""
        if self._manager is not None:
            self._manager.clear()
        if self._pool is not None:
            self._pool.close()

    def _ask(self, method: str, path: str, **more: Any) -> Response:
        from urllib3.exceptions import HTTPError, NewConnectionError, TimeoutError

        client: Any = self._pool if self._manager is None else self._manager
        try:
            found = client.urlopen(
                method, self._path + path, headers=self._headers, retries=False, redirect=False, **more
            )
        except HTTPError as error:
            # a refused connection is a kind of timeout there, for history's sake
            if isinstance(error, TimeoutError) and not isinstance(error, NewConnectionError):
                raise TooLate(_said(error)) from error
            raise Lost(_said(error)) from error
        return Response(found)


def _certificates() -> str:
    import certifi

    return certifi.where()


def _by_proxy(address: str, limits: Mapping[str, Any]) -> urllib3.PoolManager:
    import urllib3
    from urllib3.exceptions import HTTPError
    from urllib3.util import parse_url

    try:
        auth = parse_url(address).auth
        headers = urllib3.make_headers(proxy_basic_auth=unquote(auth)) if auth else None
        return urllib3.ProxyManager(address, proxy_headers=headers, **limits)
    except (HTTPError, ValueError) as error:  # a SOCKS proxy, or no address
        raise Lost(f"the environment's proxy cannot be used: {error}") from error


def _said(error: Exception) -> str:
    """The reason below urllib3's own words."""
    inner = next((a for a in error.args if isinstance(a, BaseException)), None) or error.__cause__ or error
    return str(inner)
