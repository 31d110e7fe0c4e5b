"""Requests as they come from the wire, before anything is known about causes; errors as clients are told them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, cast

from rlm_loop.accounting.budget import BudgetSpent
from rlm_loop.accounting.scope import Cancelled
from rlm_loop.messages import Role, ToolCall
from rlm_loop.models.base import (
    AuthenticationFailed,
    Diverged,
    ModelError,
    ModelNotFound,
    ModelUnreachable,
    RateLimited,
    RequestRejected,
)

_TEXTS = (None, "text", "input_text", "output_text", "summary_text", "reasoning_text")
#: Parts of a content that are no text.  What an encrypted thought costs to read again nobody can know either.
_UNREAD = {
    **dict.fromkeys(("image_url", "input_image", "image", "computer_screenshot"), "image"),
    **dict.fromkeys(("input_audio", "audio"), "audio"),
    **dict.fromkeys(("file", "input_file", "document", "container_upload"), "file"),
    **dict.fromkeys(("video", "video_url"), "video"),
    **dict.fromkeys(("redacted_thinking", "thinking"), "thinking"),
}
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
    """A request as it was read.

    `sampling` are settings that a model of ours is told, `not_applied` holds those that are known but have no place
    there (a forced tool choice), which goes into the record.
    `refusal` is why no model of ours can serve it.
    """

    messages: tuple[RequestMessage, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    stop: tuple[str, ...] = ()
    reply_schema: Mapping[str, Any] | None = None
    max_tokens: int | None = None
    stream: bool = False
    include_usage: bool = False
    model: str = ""
    not_applied: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sampling: Mapping[str, Any] = field(default_factory=dict[str, Any])
    refusal: Refused | None = None


@dataclass(eq=False, repr=False)
class Refused(Exception):
    """A request that is not served, with the error that its client is told: by default the client's own mistake.

    `again` is whether the same request may help later, `after` in how many seconds.
    """

    message: str
    _: KW_ONLY
    status: int = 400
    kind: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None
    again: bool = False
    after: float | None = None


class FieldReader:
    """Takes fields out of a JSON object one by one, with an error that names the field."""

    def __init__(self, body: Any, what: str = "the request body") -> None:
        if not isinstance(body, dict):
            raise Refused(f"{what} is not a JSON object; send one")
        self.what = what
        self.refusal: Refused | None = None
        self.body = cast("dict[str, Any]", body)

    def take(self, name: str, kind: type | tuple[type, ...] = object) -> Any:
        """The field, `None` where it is missing or null.  Raises `Refused` for another kind of value."""
        value = self.body.get(name)
        wrong = not isinstance(value, kind) or (isinstance(value, bool) and kind in (int, (int, float)))
        if value is not None and wrong:
            wanted = kind.__name__ if isinstance(kind, type) else " or ".join(k.__name__ for k in kind)
            raise Refused(f"{name} is {type(value).__name__}, not {wanted}; correct it", param=name)
        return value

    def needed(self, name: str, kind: type | tuple[type, ...], what: str) -> Any:
        """A field that has to be there, with something in it."""
        value = self.take(name, kind)
        if not value:
            raise Refused(f"{name} is missing or empty; send {what}", param=name)
        return value

    def role(self, roles: Mapping[str, Role]) -> Role:
        """Return the role of a message, by the names in `roles`."""
        role = self.take("role", str)
        if role not in roles:
            raise Refused(f"{self.what}.role is {role!r}; use {', '.join(roles)}", param=f"{self.what}.role")
        return roles[role]

    def refuse(self, message: str, *, param: str | None = None) -> None:
        """A model of ours cannot serve it, and a provider may: the first reason is `refusal`."""
        self.refusal = self.refusal or Refused(message, param=param)

    def limit(self, *names: str) -> int | None:
        """The first of these fields that is set: a number of tokens, 1 or more for a model of ours."""
        found = [(name, self.take(name, int)) for name in names]
        name, value = next(((name, int(value)) for name, value in found if value is not None), ("", None))
        if value is not None and value < 1:
            self.refuse(f"{name} is {value}; ask for 1 token or more", param=name)
            return None
        return value

    def settings(self, *names: str) -> dict[str, Any]:
        """The fields of these names that are set."""
        there = [name for name in self.body if name in names]
        return {name: value for name in there if (value := self.take(name)) is not None}


def content_of(content: Any, where: str) -> tuple[str, tuple[str, ...]]:
    """The text of a message's content, and what it has beside text.

    A string, or typed parts (their texts joined by line breaks, as llama.cpp and vLLM do).  A part of a kind that is
    not known counts by its JSON.  Raises `Refused` for what is no content.
    """
    if content is None or isinstance(content, str):
        return content or "", ()
    if not isinstance(content, list):
        raise Refused(f"{where} is {type(content).__name__}, not text or a list of parts; correct it", param=where)
    texts, unread = list[str](), list[str]()
    for index, part in enumerate(cast("list[Any]", content)):
        if isinstance(part, str):
            texts.append(part)
        elif not isinstance(part, dict):
            raise Refused(f"{where}[{index}] is {type(part).__name__}, no part of a content; correct it", param=where)
        else:
            text, kind = _part(cast("dict[str, Any]", part), where)
            texts += [] if text is None else [text]
            unread += kind
    return "\n".join(texts), tuple(unread)


def _part(part: dict[str, Any], where: str) -> tuple[str | None, tuple[str, ...]]:
    kind = part.get("type")
    if kind in _TEXTS and isinstance(part.get("text"), str):
        return part["text"], ()
    if kind == "refusal":
        return str(part.get("refusal") or ""), ()
    source: Any = part.get("source")
    if kind == "document" and isinstance(source, dict) and source.get("type") in ("text", "content"):
        return content_of(source.get("data") or source.get("content"), where)
    if kind in _UNREAD:
        return None, (_UNREAD[kind],)
    return json_of(part), ()


def json_of(value: Mapping[str, Any]) -> str:
    """An object as the text that a model may read of it, without what is sealed."""
    return json.dumps({k: v for k, v in value.items() if k not in _SEALED}, ensure_ascii=False)


def function_of(name: Any, description: Any, parameters: Any, **more: Any) -> dict[str, Any]:
    """A function tool in the form of the chat API, which models of ours are told."""
    function = {"name": name, "description": description or "", "parameters": parameters, **more}
    return {"type": "function", "function": function}


def for_ours(request: Request) -> tuple[RequestMessage, ...]:
    """The messages as a model of ours reads them: without thoughts.  Raises `Refused` for what it cannot read."""
    if request.refusal is not None:
        raise request.refusal
    for index, one in enumerate(request.messages):
        if beside := [kind for kind in one.unread if kind != "thinking"]:
            raise Refused(
                f"messages[{index}] has an {beside[0]}: the models behind this address read text only; "
                "send text parts, or describe it in words",
                param=f"messages[{index}]",
                code="unsupported_content",
            )
    plain = (RequestMessage(m.role, m.text, m.tool_calls, m.tool_call_id) for m in request.messages)
    return tuple(m for m, whole in zip(plain, request.messages) if m == whole or m.text or m.tool_calls)


_BY_CLASS: tuple[tuple[type[ModelError], int, str, str | None], ...] = (
    (AuthenticationFailed, 401, "authentication_error", "invalid_api_key"),
    (ModelNotFound, 404, "invalid_request_error", "model_not_found"),
    (Diverged, 400, "invalid_request_error", "diverged"),
    (RateLimited, 429, "rate_limit_error", "rate_limit_exceeded"),
    (ModelUnreachable, 503, "server_error", "model_unreachable"),
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
    other = (ModelError, 503 if error.retryable else 500, "server_error", None)
    _, status, kind, code = next((known for known in _BY_CLASS if isinstance(error, known[0])), other)
    again = error.retryable or status == 429
    return Refused(error.message, status=status, kind=kind, code=code, again=again, after=error.retry_after)
