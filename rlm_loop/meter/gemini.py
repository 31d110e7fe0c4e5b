"""The Gemini API: a `generateContent` request to `Request`, a `Reply` to a response or to a stream of one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from rlm_loop.messages import Reply, Role, ToolCall, Usage
from rlm_loop.meter.failures import ErrorReply
from rlm_loop.meter.request import Reading, Refused, Request, RequestMessage, text_of

#: The paths of the API.  The model and whether to stream are told by the path, not by the body.
PATH = re.compile(r"/v1(?:beta|alpha)?/models/(?P<model>[^/:]+):(?P<stream>streamGenerateContent|generateContent)")
_ROLES: dict[str, Role] = {"user": "user", "model": "assistant", "function": "user", "system": "system"}
_LIMITS = ("maxOutputTokens", "stopSequences", "responseJsonSchema", "responseSchema", "responseMimeType")
_STOPS = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}
_STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}


def read(body: Any) -> Request:
    """Read a request, with `model` and `stream` of its path among the fields.  Raises `Refused` for one that cannot be
    served."""
    form = Reading(body)
    listed = form.take("contents", list)
    if not listed:
        raise Refused("contents is missing or empty; send at least one content", param="contents")
    ignored: dict[str, None] = {}
    said: list[RequestMessage] = []
    if system := form.take("systemInstruction", (dict, str)):
        parts = system if isinstance(system, str) else cast("dict[str, Any]", system).get("parts")
        said.append(RequestMessage("system", text_of(_texts(parts), "systemInstruction", ("part",))))
    for index, content in enumerate(listed):
        said += _messages(content, f"contents[{index}]", ignored)
    settings = Reading(form.take("generationConfig", dict) or {}, "generationConfig")
    limit, stops, *schemas, _kind = (settings.take(name) for name in _LIMITS)
    not_applied = {name: value for name in settings.ignored if (value := settings.body[name]) is not None}
    choice: Any = ((form.take("toolConfig", dict) or {}).get("functionCallingConfig") or {}).get("mode")
    if choice not in (None, "AUTO", "NONE", "MODE_UNSPECIFIED"):
        not_applied["tool_choice"] = choice
    tools = tuple(_tools(form.take("tools", list)))
    return Request(
        tuple(said),
        () if choice == "NONE" else tools,
        tuple(str(text) for text in stops or ()),
        next((schema for schema in schemas if schema), None),
        limit,
        bool(form.take("stream", bool)),
        True,
        str(form.take("model", str) or ""),
        (*form.ignored, *ignored),
        not_applied,
    )


def _texts(parts: Any) -> list[dict[str, Any]] | str:
    """Parts as `text_of` knows them: those with a text, and others by the name of what they hold."""
    if isinstance(parts, str):
        return parts
    found: list[Any] = parts or []
    return [
        {"type": "part", "text": part["text"]}
        if isinstance(part, dict) and isinstance(cast("dict[str, Any]", part).get("text"), str)
        else {"type": next(iter(cast("dict[str, Any]", part)), "nothing") if isinstance(part, dict) else "nothing"}
        for part in found
    ]


def _messages(data: Any, where: str, ignored: dict[str, None]) -> Iterator[RequestMessage]:
    """One content; results of functions, which come in a user's content here, are messages of their own."""
    form = Reading(data, where)
    role = form.take("role", str) or "user"
    if role not in _ROLES:
        raise Refused(f"{where}.role is {role!r}; use user or model", param=f"{where}.role")
    texts: list[Any] = []
    calls: list[ToolCall] = []
    for index, part in enumerate(form.take("parts", list) or []):
        held = Reading(part, f"{where}.parts[{index}]")
        if call := held.take("functionCall", dict):
            arguments = json.dumps(call.get("args") or {}, ensure_ascii=False)
            calls.append(ToolCall(_id(call), str(call.get("name") or ""), arguments))
        elif result := held.take("functionResponse", dict):
            response: Any = result.get("response") or {}
            output: Any = response.get("output") if isinstance(response, dict) and len(response) == 1 else None
            text = output if isinstance(output, str) else json.dumps(response, ensure_ascii=False)
            yield RequestMessage("tool", text, tool_call_id=_id(result))
        elif held.take("thought", bool):
            ignored["contents[].thought"] = None
        else:
            texts.append(part)
    text = text_of(_texts(texts), f"{where}.parts", ("part",))
    if text or calls:
        yield RequestMessage(_ROLES[role], text, tuple(calls))


def _id(called: Mapping[str, Any]) -> str:
    """What joins a call and its result: an id where there is one, else the name."""
    return str(called.get("id") or called.get("name") or "")


def _tools(listed: Any) -> Iterator[Mapping[str, Any]]:
    """Functions as function tools; what the provider itself runs (a search) as it was sent."""
    for tool in cast("list[Any]", listed or []):
        form = Reading(tool, "a tool")
        for declared in form.take("functionDeclarations", list) or ():
            one = Reading(declared, "a function")
            parameters: Any = one.take("parametersJsonSchema", dict) or one.take("parameters", dict) or {}
            named = {name: one.body[name] for name in ("name", "description") if name in one.body}
            yield {"type": "function", "function": {**named, "parameters": parameters}}
        for name in form.ignored:
            yield {"type": name, **({name: form.body[name]} if form.body[name] else {})}


def _usage(usage: Usage | None) -> dict[str, Any]:
    """Cached tokens are among `promptTokenCount` here, thought ones beside `candidatesTokenCount`."""
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return {}
    thought = usage.reasoning_tokens or 0
    said = {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": usage.output_tokens - thought,
        "totalTokenCount": usage.input_tokens + usage.output_tokens,
    }
    more = {"cachedContentTokenCount": usage.cache_read_tokens, "thoughtsTokenCount": usage.reasoning_tokens}
    return said | {name: value for name, value in more.items() if value is not None}


def _arguments(text: str) -> Any:
    """Arguments as an object: this API has no place for text that is none, so that goes under a name of its own."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        value = None
    return cast("Any", value) if isinstance(value, dict) else {"invalid_json": text}


def write(reply: Reply, request: Request, name: str, created: int) -> dict[str, Any]:
    """The response body.  Every function call of the reply has an id here (see `exchange`)."""
    parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text or not reply.tool_calls else []
    parts += [{"functionCall": {"id": c.id, "name": c.name, "args": _arguments(c.arguments)}} for c in reply.tool_calls]
    stop = _STOPS.get(reply.finish_reason, "STOP")
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": stop, "index": 0}],
        "usageMetadata": _usage(reply.usage),
        "modelVersion": request.model,
        "responseId": name,
    }


def stream(reply: Reply, request: Request, name: str, created: int) -> Iterator[str]:
    """The same as one server-sent event."""
    yield f"data: {json.dumps(write(reply, request, name, created))}\r\n\r\n"


def error(told: ErrorReply) -> dict[str, Any]:
    """An error in this API's form."""
    status = _STATUS.get(told.status, "UNAVAILABLE" if told.again else "INTERNAL")
    return {"error": {"code": told.status, "message": told.message, "status": status}}
