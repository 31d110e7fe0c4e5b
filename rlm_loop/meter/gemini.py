"""Read the Gemini API: `generateContent` and `streamGenerateContent`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from pydantic.alias_generators import to_camel

from rlm_loop.messages import Reply, Role, ToolCall, Usage
from rlm_loop.meter.request import Refused, Request, RequestMessage, function_of, json_of
from rlm_loop.models.base import ModelError
from rlm_loop.models.streams import highest
from rlm_loop.models.wire import arguments_text, whole

_FINISH = {"MAX_TOKENS": "length", "SAFETY": "content_filter", "PROHIBITED_CONTENT": "content_filter"}
_ROLES: dict[str, Role] = {"user": "user", "model": "assistant", "function": "user", "system": "user"}
_STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}


def read(body: Any) -> Request:
    """Read a request.  Raises `Refused`, or what Python raises for another shape, for what is none of this API."""
    form = _named(body)
    said = list(_content(form.get("systemInstruction") or {}, "system"))
    if form.get("cachedContent"):
        said.append(RequestMessage("user", unread=("previous_response",)))
    for content in _listed(form["contents"]):
        said += _content(content)
    choice = _named(_named(form.get("toolConfig") or {}).get("functionCallingConfig") or {})
    return Request(tuple(said), () if choice.get("mode") == "NONE" else tuple(_tools(form.get("tools"))))


def _named(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object with its names as the API writes them: Google takes `system_instruction` as well."""
    return {to_camel(name): item for name, item in value.items()}


def _listed(value: Any) -> list[Any]:
    """Return a value, or a list of values, as a list: Google takes either."""
    return value if isinstance(value, list) else [value]


def _content(content: Mapping[str, Any], role: Role | None = None) -> Iterator[RequestMessage]:
    """Read a content; responses of functions, which come in a user's content here, are messages of their own."""
    texts, thoughts, unread, calls = list[str](), list[str](), list[str](), list[ToolCall]()
    for part in map(_named, _listed(content.get("parts") or [])):
        if isinstance(part.get("text"), str):
            (thoughts if part.get("thought") else texts).append(part["text"])
        elif call := part.get("functionCall"):
            name = str(call.get("name") or "")  # it goes by its name where it has no id
            calls.append(ToolCall(str(call.get("id") or name), name, arguments_text(call.get("args") or {})))
        elif result := part.get("functionResponse"):
            response: Any = result.get("response") or {}
            output: Any = response.get("output") if isinstance(response, dict) and len(response) == 1 else None
            text = output if isinstance(output, str) else json.dumps(response, ensure_ascii=False)
            beside = tuple("image" for _ in result.get("parts") or ())
            yield RequestMessage("tool", text, tool_call_id=str(result.get("id") or result.get("name")), unread=beside)
        elif about := part.get("inlineData") or part.get("fileData"):
            kind = str(_named(about).get("mimeType", "")).partition("/")[0]
            unread.append(kind if kind in ("image", "audio", "video") else "file")
        elif rest := {k: v for k, v in part.items() if k not in ("thoughtSignature", "thought")}:
            texts.append(json_of(rest))
    who = role or _ROLES[content.get("role") or "user"]
    if texts or thoughts or unread or calls:
        yield RequestMessage(who, "\n".join(texts), tuple(calls), None, "\n".join(thoughts), tuple(unread))


def _tools(listed: Any) -> Iterator[Mapping[str, Any]]:
    for tool in listed or ():
        for name, value in _named(tool).items():
            if name != "functionDeclarations":
                yield {"type": name, name: value}
                continue
            for one in map(_named, value or ()):
                schema = one.get("parametersJsonSchema") or one.get("parameters") or {"type": "object"}
                yield function_of(one.get("name"), one.get("description"), schema)


def joined(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The body that the chunks of a stream make together."""
    whole_body: dict[str, Any] = {}
    parts: list[Any] = []
    candidate: dict[str, Any] = {}
    for event in events:
        usage = highest(whole_body.get("usageMetadata"), event.get("usageMetadata"))
        whole_body |= {k: v for k, v in {**event, "usageMetadata": usage}.items() if v is not None}
        for one in (event.get("candidates") or ())[:1]:
            parts += (one.get("content") or {}).get("parts") or ()
            candidate |= one
    return {
        **whole_body,
        "candidates": [{**candidate, "content": {"role": "model", "parts": parts}}] if candidate else [],
    }


def heard(body: Mapping[str, Any]) -> Reply:
    """The reply in a body.  Raises `ModelError` for what is none."""
    if "candidates" not in body and "usageMetadata" not in body:
        raise ModelError(f"no content: {str(body)[:120]!r}")
    first: Any = (body.get("candidates") or [{}])[0]
    content: Any = first.get("content") or {}
    calls = tuple(call for one in _content(content, "assistant") for call in one.tool_calls)
    text = "".join(p["text"] for p in content.get("parts") or () if "text" in p and not p.get("thought"))
    finish: Any = _FINISH.get(str(first.get("finishReason")), "tool_calls" if calls else "stop")
    extra = {k: v for k, v in body.items() if k in ("responseId", "modelVersion", "usageMetadata")}
    return Reply(text, calls, finish, _usage(body.get("usageMetadata")), extra=extra)


def _usage(stated: Any) -> Usage:
    """`usageMetadata`: what came from a cache is inside `promptTokenCount`, what was thought beside
    `candidatesTokenCount`, and what a tool of the provider's brought in beside the prompt."""
    if not isinstance(stated, Mapping):
        return Usage()
    usage = cast("Mapping[str, Any]", stated)
    names = ("promptTokenCount", "toolUsePromptTokenCount", "cachedContentTokenCount", "thoughtsTokenCount")
    prompt, brought, cached, thought = (whole(usage.get(name)) for name in names)
    said = whole(usage.get("candidatesTokenCount"))
    out = None if said is None and thought is None else (said or 0) + (thought or 0)
    return Usage(None if prompt is None else prompt + (brought or 0), out, cached, reasoning_tokens=thought)


def error(told: Refused) -> dict[str, Any]:
    """An error in Google's form."""
    status = _STATUS.get(told.status, "UNAVAILABLE" if told.again else "INTERNAL")
    return {"error": {"code": told.status, "message": told.message, "status": status}}
