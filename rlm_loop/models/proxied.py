"""The way to a server by a proxy of the environment, on urllib3, which knows of tunnels and their certificates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from rlm_loop.models.connections import KEPT, Lost, Response, TooLate


class Proxied:
    """As `Connections`, but to `server` (`https://host:port`) by the proxy at `address`.

    Raises `Lost` where that is no proxy which can be used.
    """

    def __init__(
        self, address: str, server: str, *, certificates: str | None, connect: float | None, read: float | None
    ) -> None:
        import urllib3
        from urllib3.exceptions import HTTPError
        from urllib3.util import parse_url

        self._server = server
        limits: dict[str, Any] = {"maxsize": KEPT, "timeout": urllib3.Timeout(connect=connect, read=read)}
        if certificates is not None:
            limits["ca_certs"] = certificates
        try:
            auth = parse_url(address).auth
            headers = urllib3.make_headers(proxy_basic_auth=unquote(auth)) if auth else None
            self._manager: Any = urllib3.ProxyManager(address, proxy_headers=headers, **limits)
        except (HTTPError, ValueError) as error:  # a SOCKS proxy, or no address
            raise Lost(f"the environment's proxy cannot be used: {error}") from error

    def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, timeout: float | None = None
    ) -> Response:
        """As `Connections.ask`.  Raises `TooLate` and `Lost`."""
        from urllib3.exceptions import HTTPError, NewConnectionError, TimeoutError

        more = {} if timeout is None else {"timeout": timeout}
        try:
            found = self._manager.urlopen(
                method, self._server + path, body=body, headers=headers, retries=False, redirect=False, **more
            )
        except HTTPError as error:
            # a refused connection is a kind of timeout there, for history's sake
            if isinstance(error, TimeoutError) and not isinstance(error, NewConnectionError):
                raise TooLate(_said(error)) from error
            raise Lost(_said(error)) from error
        return Response(found.status, found.headers, found.reason or "", found.data)

    def close(self) -> None:
        """Close the connections that are kept; a later call opens new ones."""
        self._manager.clear()


def _said(error: Exception) -> str:
    """The reason below urllib3's own words."""
    inner = next((a for a in error.args if isinstance(a, BaseException)), None) or error.__cause__ or error
    return str(inner)
