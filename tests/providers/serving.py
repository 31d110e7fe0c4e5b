"""Stand-ins for providers on the loopback: they check a request as the real ones do, and answer in their shapes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict
from upstream import Answer, Got, upstream


class Strict(BaseModel):
    """A part of a request: another field, or another type, is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Refused(Exception):
    """A request that the provider does not take: its status and the body that says why."""


@dataclass(frozen=True)
class Said:
    """What the model behind a provider says, in no provider's shape."""

    text: str | None = None
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    refusal: str | None = None

    def until(self, stops: list[str] | None) -> str:
        """The text up to the first of these."""
        text = self.text or ""
        return text[: min([text.find(s) for s in stops or () if s in text], default=len(text))]


#: What every reply cost, as `Usage` counts; each provider says it in its own way, and leaves out what it never says.
INPUT, CACHE_READ, CACHE_WRITE, OUTPUT, REASONING = 100, 40, 10, 20, 12


@dataclass
class Provider:
    """`says` are the replies in turn, `troubles` answers (status, headers, body) that come before them."""

    says: list[Said] = field(default_factory=list[Said])
    troubles: list[tuple[int, dict[str, str], Any]] = field(default_factory=list[Any])
    requests: list[Any] = field(default_factory=list[Any])
    refused: list[Any] = field(default_factory=list[Any])
    headers: list[Mapping[str, str]] = field(default_factory=list[Any])
    address: str = ""
    media: ClassVar[str] = "text/event-stream"

    def check(self, path: str, headers: Mapping[str, str], body: Any) -> None:
        """Raises `Refused`."""
        raise NotImplementedError

    def given(self, body: Any) -> set[str]:
        """Which of stop, temperature, seed and max_tokens a request has, under whatever name."""
        raise NotImplementedError

    def answer(self, said: Said, body: Any) -> Any:
        raise NotImplementedError

    def handle(self, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, dict[str, str], Any]:
        self.headers.append(headers)
        if self.troubles:
            return self.troubles.pop(0)
        try:
            if (about := self.lookup(path, body)) is not None:
                return 200, {}, about
            self.check(path, headers, body)
        except Refused as refused:
            status, why = refused.args
            self.refused.append((body, why))
            return status, {}, why
        self.requests.append(body)
        answer = self.answer(self.says.pop(0), body)
        if body.get("stream") and isinstance(answer, dict):
            answer = list(self.events(answer, body))
        return 200, {"Content-Type": self.media} if isinstance(answer, list) else {}, answer

    def events(self, answer: dict[str, Any], body: Any) -> Iterator[str]:
        """The same answer in server-sent events."""
        raise NotImplementedError

    def lookup(self, path: str, body: Any) -> Any:
        """What is asked beside the chat, such as what a model is; `None` for the chat itself."""
        return None


P = TypeVar("P", bound=Provider)


def halves(text: str) -> tuple[str, str]:
    """A text as two pieces."""
    return text[: len(text) // 2], text[len(text) // 2 :]


def sse(event: Any, kind: str = "") -> str:
    """A server-sent event."""
    return (f"event: {kind}\n" if kind else "") + f"data: {json.dumps(event)}\n\n"


@contextmanager
def serving(provider: P, *says: Said) -> Iterator[P]:
    """The provider at `provider.address` until the block is left, with these replies."""
    provider.says = list(says)

    def answer(got: Got) -> Answer:
        if got.method == "GET":
            return Answer.of({"error": "not found"}, 404)
        headers = {name.lower(): value for name, value in got.headers}
        status, more, said = provider.handle(got.path, headers, got.json())
        if isinstance(said, list):  # each event in a chunk of its own
            return Answer([event.encode() for event in said], status, list(more.items()))
        return Answer.of(said, status, **more)

    with upstream(answer) as server:
        provider.address = server.url
        yield provider
