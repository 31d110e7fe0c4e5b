"""An MCP server as the user names it, and the error that names it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


class McpError(Exception):
    """An MCP server cannot be reached, or has ended.  The message is one line that names it."""


@dataclass(frozen=True)
class McpServer:
    """Where a server is and within what limits it is used: the arguments of `mcp_tools`.

    `command` is an argv, empty for a server at a `url`.
    """

    command: tuple[str, ...]
    url: str
    timeout: float
    start_timeout: float
    longest: int
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def name(self) -> str:
        """What messages call it: its command or its address, without a password."""
        scheme, sep, place = self.url.partition("://")
        return shlex.join(self.command)[:120] if self.command else f"{scheme}{sep}{place.rpartition('@')[2]}"


def named(server: str | Sequence[str]) -> tuple[tuple[str, ...], str]:
    """The argv, or the URL, that the user means."""
    if not isinstance(server, str):
        return tuple(map(str, server)), ""
    if server.startswith(("http://", "https://")):
        return (), server
    return tuple(shlex.split(server)), ""
