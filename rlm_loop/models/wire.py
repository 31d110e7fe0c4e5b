"""The chat-completions wire format: from a response body to a `Reply`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from rlm_loop.messages import FinishReason, Reply, ToolCall, Usage
from rlm_loop.models.base import ModelError

_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "error": "error",
}


def to_reply(
    body: Any, *, model: str = "", seconds: float = 0.0, waited: float = 0.0, cost: float | None = None
) -> Reply:
    """Read a chat-completions response.

    Missing content is `""`; a refusal in its place counts as withheld by a filter.  Whatever has no place in `Reply`
    (ids, timings, reasoning, refusals, log probabilities, a `usage` that says more than `Usage` or cannot be read)
    stays in `extra` as it came.  `cost` is used where the response does not state its own.
    Raises `ModelError` (retryable) for a body that is no completion.
    """
    if not isinstance(body, Mapping):
        raise ModelError(f"{model} sent something that is no chat completion: {str(body)[:120]!r}", model, True)
    sent = cast("Mapping[str, Any]", body)
    choices = sent.get("choices")
    if not isinstance(choices, Sequence) or not choices or not isinstance(choices[0], Mapping):
        reason = sent.get("error") or "the body has no choices"
        raise ModelError(f"{model} sent no completion: {_text(reason)[:200] or reason}", model, True)
    choice = cast("Mapping[str, Any]", choices[0])
    message = cast("Mapping[str, Any]", choice.get("message") or {})
    calls = tuple(_tool_calls(message))
    stated = str(choice.get("finish_reason") or "")
    finish = _FINISH.get(stated, "tool_calls" if calls else "stop")
    text = _text(message.get("content"))
    own = message.get("provider_specific_fields")  # where LiteLLM has it
    if not text and not calls and (message.get("refusal") or (isinstance(own, Mapping) and own.get("refusal"))):
        finish = "content_filter"
    extra = {key: value for key, value in sent.items() if key not in ("choices", "usage", "object")}
    kept = {k: v for k, v in message.items() if k not in ("role", "content", "tool_calls") and v is not None}
    if kept:
        extra["message"] = kept
    if stated not in _FINISH:
        extra["finish_reason"] = choice.get("finish_reason")
    if _more_than_read(sent.get("usage")):
        extra["usage"] = sent["usage"]
    return Reply(
        text=text,
        tool_calls=calls,
        finish_reason=finish,
        usage=to_usage(sent.get("usage"), cost=cost),
        seconds=seconds,
        waited=waited,
        extra=extra,
    )


def to_usage(stated: Any, *, cost: float | None = None) -> Usage:
    """Read a `usage` object of the chat API; what it does not state is `None`, never zero.

    There `prompt_tokens` hold what was read from a cache and written to it, and `completion_tokens` what was thought.
    """
    if not isinstance(stated, Mapping):
        return Usage(cost=cost)
    usage = cast("Mapping[str, Any]", stated)
    flat = _flat(usage)
    found: dict[str, Any] = {
        name: _whole(next((flat[k] for k in keys if flat.get(k) is not None), None)) for name, keys in _NAMES.items()
    }
    own = usage.get("cost")  # OpenRouter and some gateways
    return Usage(
        **found,
        cost=float(own) if isinstance(own, int | float) and math.isfinite(own) else cost,
    )


#: Where a figure stands in a `usage` object, the first that is there: OpenAI's place, then the names of DeepSeek
#: (`prompt_cache_hit_tokens`), OpenRouter (`cache_write_tokens`) and LiteLLM (`cache_creation_tokens`).
_NAMES = {
    "input_tokens": ("prompt_tokens",),
    "output_tokens": ("completion_tokens",),
    "cache_read_tokens": ("prompt_tokens_details.cached_tokens", "prompt_cache_hit_tokens"),
    "cache_write_tokens": (
        "prompt_tokens_details.cache_write_tokens",
        "prompt_tokens_details.cache_creation_tokens",
    ),
    "reasoning_tokens": ("completion_tokens_details.reasoning_tokens",),
}
_READ = {"total_tokens", "cost", *(key for keys in _NAMES.values() for key in keys)}


def _flat(usage: Mapping[str, Any]) -> dict[str, Any]:
    """The figures by their path; what is no object stays as it is."""
    flat: dict[str, Any] = {}
    for key, value in usage.items():
        if isinstance(value, Mapping):
            flat |= {f"{key}.{k}": v for k, v in cast("Mapping[str, Any]", value).items()}
        else:
            flat[key] = value
    return flat


def _more_than_read(stated: Any) -> bool:
    """Whether a usage says something beyond what `to_usage` reads, or what is no number."""
    if not isinstance(stated, Mapping):
        return stated is not None
    flat = _flat(cast("Mapping[str, Any]", stated)).items()
    return any(
        v is not None and ((k in _READ and k != "cost" and _whole(v) is None) or (k not in _READ and v))
        for k, v in flat
    )


def _whole(value: Any) -> int | None:
    """A number of tokens; `True`, NaN and infinity are none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value)


def _text(content: Any) -> str:
    """Content is a string, `null`, an error object, or a list of typed parts of which the text counts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        part = cast("Mapping[str, Any]", content)
        return str(part.get("text") or part.get("message") or "")
    if isinstance(content, Sequence):
        return "".join(_text(part) for part in cast("Sequence[Any]", content))
    return str(content)


def _tool_calls(message: Mapping[str, Any]) -> list[ToolCall]:
    calls: list[ToolCall] = []
    for call in cast("Sequence[Mapping[str, Any]]", message.get("tool_calls") or ()):
        function = cast("Mapping[str, Any]", call.get("function") or {})
        calls.append(ToolCall(call.get("id") or None, str(function.get("name") or ""), _arguments(function)))
    legacy = message.get("function_call")
    if not calls and isinstance(legacy, Mapping):
        function = cast("Mapping[str, Any]", legacy)
        calls.append(ToolCall(None, str(function.get("name") or ""), _arguments(function)))
    return calls


def _arguments(function: Mapping[str, Any]) -> str:
    raw = function.get("arguments")
    if raw is None:
        return ""
    return raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)  # some servers send an object


def priced(reply: Reply, price: tuple[float, float]) -> Reply:
    """The reply with its cost in US dollars, from a price per input and output token, if it states none itself."""
    usage = reply.usage
    if usage is None or usage.cost is not None or usage.input_tokens is None or usage.output_tokens is None:
        return reply
    cost = usage.input_tokens * price[0] + usage.output_tokens * price[1]
    return replace(reply, usage=replace(usage, cost=cost))
