"""Messages to a model and its replies: plain values, equal by content.

Text is kept in `Span`s, each with the cause that put it there, so that every prompt token can later be
charged to a reason (see `ledger`).  Nothing here does I/O, and nothing but the standard library is used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar, Literal, cast

Role = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "error"]


@dataclass(frozen=True)
class Span:
    """A piece of a message's text and the cause that it is charged to.

    Causes: `system`, `task`, `tool_schema`, `assistant`, `tool_result`, `repl_output`, `error`, `summary`, `template`,
    `scaffold:<injector>`, `user` (what a metered framework says beyond its task), and `unattributed` (billed by the
    provider, with no text that accounts for it).
    """

    text: str
    cause: str


@dataclass(frozen=True)
class ToolCall:
    """A call as the model wrote it: `arguments` is the raw JSON text, not yet validated."""

    id: str | None
    name: str
    arguments: str = ""


@dataclass(frozen=True)
class Message:
    """A chat message.  `turn` is the turn that wrote it: 0 for the brief, n for what turn n added."""

    role: Role
    spans: tuple[Span, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    turn: int = 0

    @property
    def text(self) -> str:
        return self.spans[0].text if len(self.spans) == 1 else "".join([span.text for span in self.spans])

    # Its JSON is kept, since every later request of a run holds the message again.
    @cached_property
    def _canonical(self) -> str:
        return canonical(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The message in the chat-completions wire format."""
        wire: dict[str, Any] = {"role": self.role, "content": self.text}
        if self.tool_calls:
            wire["tool_calls"] = [
                {"id": c.id or "", "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
                for c in self.tool_calls
            ]
        if self.tool_call_id is not None:
            wire["tool_call_id"] = self.tool_call_id
        return wire


def say(role: Role, text: str, cause: str, *, turn: int = 0) -> Message:
    """A message of one span."""
    return Message(role, (Span(text, cause),), turn=turn)


@dataclass(frozen=True)
class Prompt:
    """The messages and settings of one model call.  A run only ever appends to it, so its prefix stays cacheable.

    `tools` are native function schemas (chat-completions `tools` entries), `stop` the stop strings, and
    `reply_schema` a JSON schema that the reply has to follow where the model supports constrained output.
    `sampling` are settings (`temperature`, `top_p` ...) that this one request has instead of the model's own; they are
    no part of its digest.
    """

    messages: tuple[Message, ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()
    stop: tuple[str, ...] = ()
    reply_schema: Mapping[str, Any] | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)

    def __add__(self, messages: Iterable[Message]) -> Prompt:
        return replace(self, messages=(*self.messages, *messages))

    @classmethod
    def ask(cls, text: str) -> Prompt:
        """A prompt that is one user message."""
        return cls((say("user", text, "task"),))

    def to_dict(self) -> dict[str, Any]:
        """The request body in the chat-completions wire format, sampling settings excluded."""
        return {"messages": [m.to_dict() for m in self.messages], **self._settings()}

    def _settings(self) -> dict[str, Any]:
        body: dict[str, Any] = {}
        if self.tools:
            body["tools"] = [dict(t) for t in self.tools]
        if self.stop:
            body["stop"] = list(self.stop)
        if self.reply_schema is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "reply", "strict": True, "schema": dict(self.reply_schema)},
            }
        return body

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical wire body: two requests with the same digest are byte-equal."""
        messages = ",".join([m._canonical for m in self.messages])  # pyright: ignore[reportPrivateUsage]
        rest = canonical(self._settings())[1:]  # "messages" comes first in the order of the keys
        body = f'{{"messages":[{messages}]{"" if rest == "}" else ","}{rest}'
        return hashlib.sha256(body.encode()).hexdigest()


canonical = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str).encode
"""A JSON value as text in canonical form."""


def digest(value: Any) -> str:
    """SHA-256 (hex) of a JSON value in canonical form."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def common(left: Sequence[Any], right: Sequence[Any]) -> int:
    """Return how many items two sequences have in common at their start."""
    count = 0
    for one, other in zip(left, right, strict=False):
        if one is not other and one != other:  # messages of a run are nearly always the very same
            break
        count += 1
    return count


@dataclass(frozen=True)
class Usage:
    """Tokens and money that calls cost.  `None` means not known, never zero.

    `input_tokens` are all prompt tokens, however they were read: of them `cache_read_tokens` came from the provider's
    cache, and `cache_write_tokens` were put into it.  `output_tokens` are everything generated, of them
    `reasoning_tokens` what was thought and not said.  `cost` is in US dollars.  Providers differ (Anthropic's
    `input_tokens` leave out what was read from a cache and written to it, Gemini's candidates what was thought): where
    their figures come in they are converted to this.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    calls: int = 1
    cost: float | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None

    NOTHING: ClassVar[Usage]
    """The usage of no call at all: every figure is known to be zero."""

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Usage:
        """Read back what a trace or a row keeps; old ones call `cache_read_tokens` `cached_tokens`."""
        known: dict[str, Any] = {name: stored[name] for name in _USAGE if name in stored}
        known.setdefault("cache_read_tokens", stored.get("cached_tokens"))
        for name, figure in known.items():
            if isinstance(figure, dict):  # `{"repr": "nan"}`: JSON has no such number
                known[name] = float(cast("dict[str, str]", figure)["repr"])
        return cls(**known)

    def __add__(self, other: Usage) -> Usage:
        figures = list[Any]()  # a comprehension is a call more, twice for each reply
        for ours, theirs in zip(_FIGURES(self), _FIGURES(other), strict=True):
            figures.append(None if ours is None or theirs is None else ours + theirs)
        return Usage(*figures)

    @property
    def total_tokens(self) -> int | None:
        """Input plus output."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens


Usage.NOTHING = Usage(0, 0, 0, 0, 0.0, 0, 0)
_USAGE = tuple(f.name for f in fields(Usage))
_FIGURES = attrgetter(*_USAGE)


@dataclass(frozen=True)
class Reply:
    """A reply of a model.

    `seconds` is the whole call on the clock, `waited` the part of it spent waiting for rate limits and
    retries, `extra` whatever else the provider sent (timings, ids): opaque, kept for the trace.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason = "stop"
    usage: Usage | None = None
    seconds: float = 0.0
    waited: float = 0.0
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)

    @property
    def cut_off(self) -> bool:
        """The reply ended because the length limit was reached: never executed, never an answer."""
        return self.finish_reason == "length"
