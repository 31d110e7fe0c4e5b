"""What comes back from a server, or does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlm_loop.traces.received import parse

#: Bytes of an answer, unpacked.
LONGEST = 64 << 20


class BadAddress(ValueError):
    """No address that can be asked: it begins with `http://` or `https://` and names a host."""


class TooLate(ConnectionError):
    """There was no connection, or no further data, in the time that was allowed."""


class Lost(ConnectionError):
    """The server cannot be reached, or went away in the middle."""


class BrokenOff(Lost):
    """The server went away in the middle of its answer."""


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
