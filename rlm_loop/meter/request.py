"""Requests as they come from the wire, before anything is known about causes; errors as clients are told them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, cast

from rlm_loop.accounting.budget import BudgetSpent
from rlm_loop.accounting.scope import Cancelled
from rlm_loop.messages import Role, ToolCall
from rlm_loop.models.base import (
    AuthenticationFailed,
    ModelError,
    ModelNotFound,
    ModelUnreachable,
    RateLimited,
    RequestRejected,
)

#: Words in the type of a part that is no text.  What an encrypted thought costs to read again nobody can know either.
_UNREAD = (
    *(("image", "image"), ("screenshot", "image"), ("audio", "audio"), ("video", "video")),
    *(("file", "file"), ("document", "file"), ("upload", "file"), ("thinking", "thinking")),
)
#: For whom a text is that only its provider can read; it comes back with each request.
_SEALED = ("encrypted_content", "signature", "thoughtSignature", "thought_signature", "cache_control")


@dataclass(frozen=True)
class RequestMessage:
    """A message as the client sent it.

    `thought` is what the model had thought, where it is sent back; `unread` what it holds beside text: `image`, `file`,
    `thinking` (encrypted), `previous_response` (kept by the provider).
    """

    role: Role
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    thought: str = ""
    unread: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """A request as it was read; of one that is passed on to a provider only what is charged or recorded.

    `sampling` are settings that a model of ours is told, `not_applied` those that are known but have no place there (a
    forced tool choice), which goes into the record.
    """

    messages: tuple[RequestMessage, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    _: KW_ONLY
    stop: tuple[str, ...] = ()
    reply_schema: Mapping[str, Any] | None = None
    max_tokens: int | None = None
    stream: bool = False
    include_usage: bool = False
    model: str = ""
    not_applied: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sampling: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(eq=False, repr=False)
class Refused(Exception):
    """A request that is not served, with the error that its client is told: by default the client's own mistake.

    `again` is whether the same request may help later, `after` in how many seconds.
    """

    message: str
    _: KW_ONLY
    status: int = 400
    kind: str = "invalid_request_error"
    code: str | None = None
    again: bool = False
    after: float | None = None


def content_of(content: Any) -> tuple[str, tuple[str, ...]]:
    """The text of a message's content, and what it has beside text.

    A string, or typed parts (their texts joined by line breaks, as llama.cpp and vLLM do).  A part of a kind that is
    not known counts by its JSON.  Raises `Refused` for what is no content.
    """
    if content is None or isinstance(content, str):
        return content or "", ()
    if not isinstance(content, list):
        raise Refused(f"a content is {type(content).__name__}, not text or a list of parts; correct it")
    texts, unread = list[str](), list[str]()
    for part in cast("list[Any]", content):
        if isinstance(part, str):
            texts.append(part)
        elif not isinstance(part, dict):
            raise Refused(f"a content has {type(part).__name__}, which is no part of one; correct it")
        else:
            text, kind = _part(cast("dict[str, Any]", part))
            texts += [] if text is None else [text]
            unread += [] if kind is None else [kind]
    return "\n".join(texts), tuple(unread)


def _part(part: dict[str, Any]) -> tuple[str | None, str | None]:
    """The text of a part, or the kind of what cannot be read of it."""
    source: Any = part.get("source")
    if isinstance(source, dict) and source.get("type") == "text":  # a document
        part = {"text": source.get("data")}
    for said in (part.get("text"), part.get("refusal")):
        if isinstance(said, str):
            return said, None
    kind = next((kind for word, kind in _UNREAD if word in str(part.get("type"))), None)
    return (None, kind) if kind else (json_of(part), None)


def json_of(value: Mapping[str, Any]) -> str:
    """An object as the text that a model may read of it, without what is sealed."""
    return json.dumps({k: v for k, v in value.items() if k not in _SEALED}, ensure_ascii=False)


def function_of(name: Any, description: Any, parameters: Any, **more: Any) -> dict[str, Any]:
    """A function tool in the form of the chat API, which models of ours are told."""
    function = {"name": name, "description": description or "", "parameters": parameters, **more}
    return {"type": "function", "function": function}


def for_ours(messages: tuple[RequestMessage, ...]) -> tuple[RequestMessage, ...]:
    """The messages as a model of ours reads them: without thoughts.  Raises `Refused` for what it cannot read."""
    for index, one in enumerate(messages):
        if beside := [kind for kind in one.unread if kind != "thinking"]:
            raise Refused(
                f"messages[{index}] holds {beside[0]} content: the models behind this address read text only; "
                "send text parts, or describe it in words"
            )
    thought_alone = [m for m in messages if (m.thought or m.unread) and not (m.text or m.tool_calls)]
    return tuple(replace(m, thought="", unread=()) for m in messages if m not in thought_alone)


_BY_CLASS: tuple[tuple[type[ModelError], int, str], ...] = (
    (AuthenticationFailed, 401, "authentication_error"),
    (ModelNotFound, 404, "invalid_request_error"),
    (RateLimited, 429, "rate_limit_error"),
    (ModelUnreachable, 503, "server_error"),
)


def failure(error: BaseException) -> Refused:
    """Return the answer that tells a client of an error."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, BudgetSpent):
        message = f"the meter's budget is spent: {error}"
        return Refused(message, status=429, kind="insufficient_quota", code="insufficient_quota")
    if isinstance(error, Cancelled):
        return Refused("the meter is closing: ask again when it is up", status=503, kind="server_error", again=True)
    if isinstance(error, RequestRejected):
        return Refused(error.message, code="context_length_exceeded" if "window" in error.message else None)
    if not isinstance(error, ModelError):
        return Refused(f"{type(error).__name__}: {error}", status=500, kind="server_error")
    other = (ModelError, 503 if error.retryable else 500, "server_error")
    _, status, kind = next((known for known in _BY_CLASS if isinstance(error, known[0])), other)
    again = error.retryable or status == 429
    return Refused(error.message, status=status, kind=kind, again=again, after=error.retry_after)
