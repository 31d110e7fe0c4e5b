"""The chat-completions wire format: from a response body to a `Reply`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from rlm_loop.accounting.prices import Price
from rlm_loop.messages import FinishReason, Reply, ToolCall, Usage
from rlm_loop.models.base import ModelError

_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "error": "error",
}
#: The places of a figure in a `usage` object, the first that is there: OpenAI's, in chats and in responses, then
#: those of DeepSeek (`prompt_cache_hit_tokens`), OpenRouter (`cache_write_tokens`) and LiteLLM
#: (`cache_creation_tokens`).
_FIGURES = {
    "input_tokens": ("prompt_tokens", "input_tokens"),
    "output_tokens": ("completion_tokens", "output_tokens"),
    "cache_read_tokens": (
        "prompt_tokens_details.cached_tokens",
        "input_tokens_details.cached_tokens",
        "prompt_cache_hit_tokens",
    ),
    "cache_write_tokens": (
        "prompt_tokens_details.cache_write_tokens",
        "prompt_tokens_details.cache_creation_tokens",
        "input_tokens_details.cache_write_tokens",
    ),
    "reasoning_tokens": ("completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens"),
}
_MOST = 10**15  # of tokens, or dollars: what is more is no figure


def to_reply(
    body: Any, *, model: str = "", seconds: float = 0.0, waited: float = 0.0, cost: float | None = None
) -> Reply:
    """Read a chat-completions response.

    Missing content is `""`; a refusal in its place counts as withheld by a filter.  Whatever has no place in `Reply`
    (ids, timings, reasoning, refusals, log probabilities, the usage) stays in `extra` as it came.  `cost` is used where
    the response does not state its own.  Raises `ModelError` (retryable) for a body that is no completion.
    """
    if not isinstance(body, Mapping):
        raise ModelError(f"{model} sent something that is no chat completion: {str(body)[:120]!r}", model, True)
    sent = cast("Mapping[str, Any]", body)
    try:
        choice = _object((_list(sent.get("choices"), "choices") or [None])[0], "first choice")
        message = _object(choice.get("message") if choice.get("message") is not None else {}, "message")
        calls = tuple(_tool_calls(message))
        text = _text(message.get("content"))
    except ValueError as error:
        reason = _said(sent.get("error")) or str(error)
        raise ModelError(f"{model} sent no completion: {reason[:200]}", model, True) from None
    stated = str(choice.get("finish_reason") or "")[:40]
    finish = _FINISH.get(stated, "tool_calls" if calls else "stop")
    own = message.get("provider_specific_fields")  # where LiteLLM has it
    if not text and not calls and (message.get("refusal") or (isinstance(own, Mapping) and own.get("refusal"))):
        finish = "content_filter"
    extra = {key: value for key, value in sent.items() if key not in ("choices", "object") and value is not None}
    more = {k: v for k, v in message.items() if k not in ("role", "content", "tool_calls") and v is not None}
    extra |= {"message": more} if more else {}
    extra |= {} if stated in _FINISH else {"finish_reason": choice.get("finish_reason")}
    return Reply(text, calls, finish, to_usage(sent.get("usage"), cost=cost), seconds, waited, extra)


def to_usage(stated: Any, *, cost: float | None = None) -> Usage:
    """Read a `usage` object of the chat API; what it does not state is `None`, never zero.

    There `prompt_tokens` hold what was read from a cache and written to it, and `completion_tokens` what was thought.
    """
    if not isinstance(stated, Mapping):
        return Usage(cost=cost)
    flat: dict[str, Any] = {}
    for key, value in cast("Mapping[str, Any]", stated).items():
        flat |= {f"{key}.{k}": v for k, v in value.items()} if isinstance(value, Mapping) else {key: value}  # pyright: ignore
    usage: dict[str, Any] = {
        name: whole(next((flat[k] for k in places if flat.get(k) is not None), None))
        for name, places in _FIGURES.items()
    }
    thought, total = usage["reasoning_tokens"], whole(flat.get("total_tokens"))
    without = (usage["input_tokens"] or 0) + (usage["output_tokens"] or 0)
    if thought and without != total == without + thought:  # xAI's, and Gemini's in this form, have it beside the text
        usage["output_tokens"] = (usage["output_tokens"] or 0) + thought
    own = _number(flat.get("cost"))  # OpenRouter and some gateways
    return Usage(**usage, cost=cost if own is None else own)


def _number(value: Any) -> float | None:
    """Return a number as it is; `True`, NaN, infinity and what no account can be are none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_MOST < value < _MOST:
        return None
    return float(value)


def whole(value: Any) -> int | None:
    """Return a number of tokens, `None` for what is none."""
    number = _number(value)
    return None if number is None else int(number)


def _object(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"its {what} is no object")
    return cast("Mapping[str, Any]", value)


def _list(value: Any, what: str) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise ValueError(f"its {what} are no list")
    return cast("list[Any]", value or [])


def _said(error: Any) -> str:
    """Return the text of an error in the body: an object with a message, or a text."""
    if isinstance(error, Mapping):
        error = cast("Mapping[str, Any]", error).get("message") or cast("Any", error)
    return "" if error is None else str(error)


def _text(content: Any) -> str:
    """Read content: a string, `null`, or a list of typed parts of which the text counts; raises `ValueError`."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = [
        part if isinstance(part, str) else _object(part, "part of the content").get("text") or ""
        for part in _list(content, "parts of the content")
    ]
    if not all(isinstance(part, str) for part in parts):
        raise ValueError("a part of its content is no text")
    return "".join(parts)


def _tool_calls(message: Mapping[str, Any]) -> list[ToolCall]:
    """Read its calls; a name or an id that is no text is none.  Raises `ValueError` for what is no call."""
    calls: list[ToolCall] = []
    for item in _list(message.get("tool_calls"), "tool_calls"):
        call = _object(item, "tool call")
        function = _object(call.get("function") or call.get("custom") or {}, "tool call's function")
        raw = function.get("arguments", function.get("input", ""))  # a custom tool is called with a text
        if not isinstance(raw, str):  # some servers send an object
            raw = "" if raw is None else json.dumps(raw, ensure_ascii=False)
        calls.append(ToolCall(_name(call.get("id")) or None, _name(function.get("name")), raw))
    return calls


def _name(value: Any) -> str:
    return value if isinstance(value, str) else str(value) if type(value) is int else ""


def arguments_object(arguments: str, otherwise: str = "input") -> dict[str, Any]:
    """Return arguments as an object; what is none goes back under `otherwise`, so that the model sees what it wrote."""
    try:
        value: Any = json.loads(arguments or "{}", strict=False)
    except ValueError:
        value = None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {otherwise: arguments}


def priced(reply: Reply, price: Price) -> Reply:
    """Return the reply with its cost in US dollars, if it states none itself."""
    usage = reply.usage
    if usage is None or usage.cost is not None or usage.input_tokens is None or usage.output_tokens is None:
        return reply
    read = price.of_input(usage.input_tokens, usage.cache_read_tokens or 0, usage.cache_write_tokens or 0)
    return replace(reply, usage=replace(usage, cost=read + usage.output_tokens * price.output / 1e6))
