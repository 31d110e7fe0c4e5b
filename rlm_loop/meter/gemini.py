"""Read the Gemini API: `generateContent` and `streamGenerateContent`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from pydantic.alias_generators import to_camel

from rlm_loop.messages import Reply, ToolCall, Usage
from rlm_loop.meter.request import FieldReader, Refused, Request, RequestMessage, function_of, json_of
from rlm_loop.models.base import ModelError
from rlm_loop.models.streams import highest
from rlm_loop.models.wire import arguments_text, whole

_FINISH = {"MAX_TOKENS": "length", "SAFETY": "content_filter", "PROHIBITED_CONTENT": "content_filter"}
_STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}


def read(body: Any) -> Request:
    """Read a request.  Raises `Refused` for what is no request of this API."""
    form = FieldReader(_camel(body))
    listed = form.needed("contents", (list, dict, str), "at least one content")
    said = [*_content(form.take("systemInstruction", (dict, str)) or {}, "systemInstruction", "system")]
    if form.take("cachedContent", str):
        said.append(RequestMessage("user", unread=("previous_response",)))
    for index, content in enumerate(listed if isinstance(listed, list) else [listed]):
        said += _content(content, f"contents[{index}]")
    config = FieldReader(form.take("generationConfig", dict) or {}, "generationConfig")
    choice: Any = (form.take("toolConfig", dict) or {}).get("functionCallingConfig") or {}
    schema = config.take("responseJsonSchema", dict) or config.take("responseSchema", dict)
    kind = config.take("responseMimeType", str)
    return Request(
        tuple(said),
        () if choice.get("mode") == "NONE" else tuple(_tools(form.take("tools", list))),
        tuple(str(text) for text in config.take("stopSequences", list) or ()),
        schema or ({"type": "object"} if kind == "application/json" else None),
        config.limit("maxOutputTokens"),
    )


#: Names of the protocol; inside schemas and arguments a name is somebody else's.
_OTHERS_OWN = (
    *("parameters", "parametersJsonSchema", "args", "response", "responseSchema", "responseJsonSchema", "schema"),
)


def _camel(value: Any) -> Any:
    """The body with its names as the API writes them: Google takes `system_instruction` as well."""
    if isinstance(value, list):
        return [_camel(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    named = ((to_camel(name), item) for name, item in cast("dict[str, Any]", value).items())
    return {name: item if name in _OTHERS_OWN else _camel(item) for name, item in named}


def _content(content: Any, where: str, role: Any = None) -> Iterator[RequestMessage]:
    """Read a content; responses of functions, which come in a user's content here, are messages of their own."""
    form = FieldReader({"parts": [content]} if isinstance(content, str) else content, where)
    parts = form.take("parts", (list, dict, str)) or []
    texts, thoughts, unread, calls = list[str](), list[str](), list[str](), list[ToolCall]()
    for one in cast("list[Any]", parts if isinstance(parts, list) else [parts]):
        part: dict[str, Any] = {"text": one} if isinstance(one, str) else FieldReader(one, where).body
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
            kind = str(about.get("mimeType", "")).partition("/")[0]
            unread.append(kind if kind in ("image", "audio", "video") else "file")
        elif rest := {k: v for k, v in part.items() if k not in ("thoughtSignature", "thought")}:
            texts.append(json_of(rest))
    stated = form.take("role", str)
    if stated not in (None, "user", "model", "function", "system"):
        raise Refused(f"{where}.role is {stated!r}; use user or model", param=f"{where}.role")
    who = role or ("assistant" if stated == "model" else "user")
    if texts or thoughts or unread or calls:
        yield RequestMessage(who, "\n".join(texts), tuple(calls), None, "\n".join(thoughts), tuple(unread))


def _tools(listed: Any) -> Iterator[Mapping[str, Any]]:
    for tool in cast("list[Any]", listed or []):
        for name, value in FieldReader(tool, "tools").body.items():
            if name != "functionDeclarations":
                yield {"type": name, name: value}
                continue
            for one in value or ():
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
    calls = tuple(call for one in _content(content, "content", "assistant") for call in one.tool_calls)
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
