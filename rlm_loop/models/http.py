"""JSON over kept-alive connections to one server: straight to it, or by the environment's proxy."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote
from urllib.request import getproxies, proxy_bypass

from rlm_loop.models.connections import Connections, Lost, Response, TooLate
from rlm_loop.models.proxied import Proxied

__all__ = ["BadAddress", "Http", "Lost", "Response", "TooLate"]


class BadAddress(ValueError):
    """No address that can be asked: it begins with `http://` or `https://` and names a host."""


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
        from urllib3 import make_headers
        from urllib3.exceptions import LocationParseError
        from urllib3.util import parse_url

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
            own |= {"Authorization": make_headers(basic_auth=unquote(place.auth))["authorization"]}
        self.base_url = base_url
        self._headers = {**own, **headers}
        self._path = place.path or ""
        limits: dict[str, Any] = {"connect": None if timeout is None else min(timeout, 20.0), "read": timeout}
        limits["certificates"] = (
            (os.environ.get("SSL_CERT_FILE") or _certificates()) if place.scheme == "https" else None
        )
        proxy = getproxies().get(place.scheme) if proxies and not proxy_bypass(host) else None
        self._way: Connections | Proxied = (
            Connections(host.strip("[]"), place.port, **limits)
            if proxy is None
            else Proxied(proxy, f"{place.scheme}://{place.netloc}", **limits)
        )

    def post(self, path: str, body: Mapping[str, Any] | str) -> Response:
        """Send an object to `path` below the address, as JSON; a text is JSON already.

        Raises `UnicodeEncodeError` for a body that is no valid text, `TooLate` and `Lost`.
        """
        if not isinstance(body, str):
            body = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return self._way.ask("POST", self._path + path, self._headers, body.encode())

    def get(self, path: str, timeout: float | None = None) -> Response:
        """Ask for `path` below the address, for `timeout` seconds where it is given.  Raises `TooLate` and `Lost`."""
        return self._way.ask("GET", self._path + path, self._headers, None, timeout)

    def close(self) -> None:
        """Close the connections that are kept; a later call opens new ones."""
        self._way.close()


def _certificates() -> str:
    import certifi

    return certifi.where()
