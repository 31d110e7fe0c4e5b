"""A request as it was read from the wire, before anything is known about causes; and why one cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from rlm_loop.messages import Role, ToolCall


@dataclass(frozen=True)
class RequestMessage:
    """One message as the client sent it."""

    role: Role
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True)
class Request:
    """One request.

    `ignored` names the fields that nothing here knows, `not_applied` holds settings that are known but that the model
    behind the meter is not told (sampling, a forced tool choice): both go into the record.
    """

    messages: tuple[RequestMessage, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    stop: tuple[str, ...] = ()
    reply_schema: Mapping[str, Any] | None = None
    max_tokens: int | None = None
    stream: bool = False
    include_usage: bool = False
    model: str = ""
    ignored: tuple[str, ...] = ()
    not_applied: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Refused(Exception):
    """A request that cannot be served as it is: the client's mistake, with its HTTP status."""

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code
        self.status = status


class Reading:
    """Takes fields out of a JSON object one by one, with an error that names the field; the rest is `ignored`."""

    def __init__(self, body: Any, what: str = "the request body") -> None:
        if not isinstance(body, dict):
            raise Refused(f"{what} is not a JSON object; send one")
        self.body = cast("dict[str, Any]", body)
        self._left = dict.fromkeys(self.body)

    def take(self, name: str, kind: type | tuple[type, ...] = object) -> Any:
        """The field, `None` where it is missing or null.  Raises `Refused` for another kind of value."""
        self._left.pop(name, None)
        value = self.body.get(name)
        wrong = not isinstance(value, kind) or (isinstance(value, bool) and kind in (int, (int, float)))
        if value is not None and wrong:
            wanted = kind.__name__ if isinstance(kind, type) else " or ".join(k.__name__ for k in kind)
            raise Refused(f"{name} is {type(value).__name__}, not {wanted}; correct it", param=name)
        return value

    def limit(self, *names: str) -> int | None:
        """The first of these fields that is set: a number of tokens, 1 or more."""
        found = [(name, self.take(name, int)) for name in names]
        for name, value in found:
            if value is not None:
                if value < 1:
                    raise Refused(f"{name} is {value}; ask for 1 token or more", param=name)
                return int(value)
        return None

    def settings(self, names: frozenset[str]) -> dict[str, Any]:
        """The fields of these names that are set."""
        there = [name for name in self.body if name in names]
        return {name: value for name in there if (value := self.take(name)) is not None}

    @property
    def ignored(self) -> tuple[str, ...]:
        """The fields that nobody took."""
        return tuple(self._left)


def text_of(content: Any, where: str, kinds: tuple[str, ...] = ("text", "input_text", "output_text")) -> str:
    """The text of a message's content: a string, or typed parts that are all text (joined by line breaks, as
    llama.cpp and vLLM do).  Raises `Refused` for an image or anything else that is no text."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise Refused(f"{where} is {type(content).__name__}, not text or a list of parts; correct it", param=where)
    texts: list[str] = []
    for index, part in enumerate(cast("list[Any]", content)):
        if isinstance(part, str):
            texts.append(part)
            continue
        kind: Any = cast("dict[str, Any]", part).get("type") if isinstance(part, dict) else type(part).__name__
        if kind == "refusal":
            texts.append(str(part.get("refusal") or ""))
        elif kind in kinds and isinstance(part.get("text"), str):
            texts.append(part["text"])
        else:
            raise Refused(
                f"{where}[{index}] is of type {kind!r}: the models behind this address read text only; "
                "send text parts, or describe it in words",
                param=f"{where}[{index}]",
                code="unsupported_content",
            )
    return "\n".join(texts)
