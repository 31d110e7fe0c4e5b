"""Standing in front of a provider: requests go through untouched, answers as they come; both are read afterwards."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from email.message import Message
from typing import Any
from urllib.parse import urlsplit

from rlm_loop.accounting.scope import Scope, call_scope
from rlm_loop.messages import Reply, Usage
from rlm_loop.meter.figures import MeteredCall
from rlm_loop.meter.request import Refused, Request, RequestMessage
from rlm_loop.meter.session import MeterSession
from rlm_loop.models.base import ModelError
from rlm_loop.models.http import LONGEST, Answer, Http
from rlm_loop.models.streams import events_of
from rlm_loop.traces.received import parse

#: Seconds without a byte of the provider's after which it is gone; clients give up before, and are seen to.
SILENCE = 1800.0
#: Fields of one connection, not of what is sent over it; the body is framed anew.
_OF_THE_CONNECTION = {
    *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"),
    *("transfer-encoding", "upgrade", "expect"),
}
#: Raised by readers for what is none of theirs.
_UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, RecursionError, Refused, ModelError)


class ForwardedProvider:
    """The place that requests are passed on to.  Raises `ValueError` for what is no address of one."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        if place.scheme not in ("http", "https") or not place.hostname or place.username or place.query:
            raise ValueError(
                f"cannot forward to {place.hostname or url!r}: give http(s)://HOST[/PATH]; keys stay in the client"
            )
        self._http = Http(f"{place.scheme}://{place.netloc}", headers={}, timeout=SILENCE)
        self._path = place.path.rstrip("/")
        self.address = f"{place.scheme}://{place.netloc}{self._path}"
        self.label = _label(self.address) or place.netloc
        self._scope = Scope()

    def path(self, sent: str) -> str:
        """The path and query as the provider gets them: below its own, `/v1` once."""
        both = self._path.endswith("/v1") and (sent == "/v1" or sent.startswith("/v1/"))
        return (self._path.removesuffix("/v1") if both else self._path) + sent

    @contextmanager
    def ask(self, method: str, path: str, headers: Message[str, str], body: bytes | None) -> Generator[Answer]:
        """Its answer, not yet read.  Raises `Lost`."""
        token = call_scope.set(self._scope)
        try:
            with self._http.asking(method, self.path(path), passed_on(headers), body) as answer:
                yield answer
        finally:
            call_scope.reset(token)

    def close(self) -> None:
        """Hang up on the provider, wherever it is in its answers."""
        self._scope.end("the meter is closing")


def _label(address: str) -> str:
    """Return the name that genai-prices has for the provider at an address."""
    try:
        from genai_prices.data_snapshot import get_snapshot

        return str(get_snapshot().find_provider(None, None, address).id)
    except (ImportError, LookupError):
        return ""


def passed_on(headers: Message[str, str]) -> list[tuple[str, str]]:
    """Return a client's header fields without those of its connection, in order; an answer is to come unpacked."""
    kept = of_the_content(headers, "host", "content-length", "accept-encoding")
    return [*kept, ("Accept-Encoding", "identity")]


def of_the_content(headers: Message[str, str], *left_out: str) -> list[tuple[str, str]]:
    """Return the header fields without those of the connection, each on one line however it came."""
    own = {name.strip().lower() for line in headers.get_all("Connection", []) for name in line.split(",")}
    fields = [(k, " ".join(v.splitlines())) for k, v in headers.items()]
    return [(k, v) for k, v in fields if k.lower() not in _OF_THE_CONNECTION | own | {*left_out}]


@dataclass(eq=False)
class ForwardedExchange:
    """A forwarded request, and its answer as far as it came.  `api` reads both; `found` is what it read at the end.

    `ended` is when the latest piece of the answer was about to go out: before the client can have asked again.
    """

    session: MeterSession
    call: MeteredCall
    api: Any
    body: bytes
    model: str = ""
    stream: bool = False
    status: int = 502
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    pieces: list[bytes] = field(default_factory=list[bytes])
    size: int = 0
    began: float = field(default_factory=time.perf_counter)
    ended: float = 0.0
    over: bool = False
    found: tuple[Request, Reply] | None = None

    def add(self, piece: bytes) -> None:
        """A piece of the answer is about to go out; more than `LONGEST` bytes are not kept."""
        self.ended = time.perf_counter()
        self.size += len(piece)
        if self.size <= LONGEST:
            self.pieces.append(piece)

    def may_be_over(self, then: float) -> bool:
        """Return whether its client may have had the whole answer then, of which we do not know that it is over."""
        return not self.over and 0.0 < self.ended <= then

    def read(self) -> tuple[Request, Reply, str]:
        """Return the request, its reply, and what of them could not be read.

        A request that cannot be read is one of which nobody knows what its tokens are; a reply that cannot be read has
        no usage.
        """
        wrong: list[str] = []
        request = Request((RequestMessage("user", unread=("request",)),), model=self.model)
        reply = Reply(usage=Usage(None, None))
        try:
            stated: Request = self.api.read(parse(self.body))
            request = replace(stated, model=stated.model or self.model, stream=stated.stream or self.stream)
        except _UNREADABLE as error:
            wrong.append(f"request: {type(error).__name__}: {error}")
        try:
            reply = self.api.heard(self._whole())
        except _UNREADABLE as error:
            wrong.append(f"reply: {type(error).__name__}: {error}")
        return request, replace(reply, seconds=self.ended - self.began), "; ".join(wrong)

    def _whole(self) -> Any:
        if self.size > LONGEST:
            raise ValueError(f"an answer of {self.size:,} bytes")
        data = b"".join(self.pieces)
        if "event-stream" in self.headers.get("content-type", ""):
            return self.api.joined(events_of(data))
        value = parse(data)
        return self.api.joined(value) if isinstance(value, list) else value

    def said(self) -> str:
        """The provider's own words where it refused, in one short line."""
        text = b"".join(self.pieces)[:4096].decode("utf-8", "replace")
        with suppress(ValueError, AttributeError, KeyError, TypeError):
            text = str(json.loads(text)["error"]["message"])
        return " ".join(text.split())[:200]
