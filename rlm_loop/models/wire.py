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
    try:
        choice = _object(_first(sent.get("choices")), "choice")
        message = _object(choice.get("message"), "message")
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
        name: whole(next((flat[k] for k in keys if flat.get(k) is not None), None)) for name, keys in _NAMES.items()
    }
    own = usage.get("cost")  # OpenRouter and some gateways
    entered, out, thought, total = (
        *map(found.get, ("input_tokens", "output_tokens", "reasoning_tokens")),
        whole(usage.get("total_tokens")),
    )
    said = (entered or 0) + (out or 0)
    if thought and said != total == said + thought:  # xAI's, and Gemini's in this form, have it beside what was said
        found["output_tokens"] = (out or 0) + thought
    return Usage(
        **found,
        cost=cost if _number(own) is None else _number(own),
    )


#: Where a figure stands in a `usage` object, the first that is there: OpenAI's place, in chats and in responses, then
#: the names of DeepSeek (`prompt_cache_hit_tokens`), OpenRouter (`cache_write_tokens`) and LiteLLM
#: (`cache_creation_tokens`).
_NAMES = {
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
        v is not None and ((k in _READ and k != "cost" and whole(v) is None) or (k not in _READ and v)) for k, v in flat
    )


_MOST = 10**15  # of tokens, or dollars: what is more is no figure


def _number(value: Any) -> float | None:
    """A number; `True`, NaN, infinity and what no account can be are none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_MOST < value < _MOST:
        return None
    return float(value)


def whole(value: Any) -> int | None:
    """A number of tokens."""
    number = _number(value)
    return None if number is None else int(number)


def _first(choices: Any) -> Any:
    if not isinstance(choices, list) or not choices:
        raise ValueError("the body has no choices")
    return cast("list[Any]", choices)[0]


def _object(value: Any, what: str) -> Mapping[str, Any]:
    """A part of a body that must be an object; where it is missing it says nothing."""
    if value is None and what != "choice":
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"its {what} is no object")
    return cast("Mapping[str, Any]", value)


def _said(error: Any) -> str:
    """An error in the body: an object with a message, or a text."""
    if isinstance(error, Mapping):
        error = cast("Mapping[str, Any]", error).get("message") or cast("Any", error)
    return "" if error is None else str(error)


def _text(content: Any) -> str:
    """Content is a string, `null`, or a list of typed parts of which the text counts; raises `ValueError`."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise ValueError("its content is no text")
    parts = [
        part if isinstance(part, str) else _object(part, "part of the content").get("text")
        for part in cast("list[Any]", content)
    ]
    if not all(part is None or isinstance(part, str) for part in parts):
        raise ValueError("a part of its content is no text")
    return "".join(part or "" for part in parts)


def _tool_calls(message: Mapping[str, Any]) -> list[ToolCall]:
    """What it calls; a name or an id that is no text is none.  Raises `ValueError` for what is no call."""
    stated: Any = message.get("tool_calls")
    if stated is not None and not isinstance(stated, list):
        raise ValueError("its tool_calls are no list")
    calls: list[ToolCall] = []
    for item in cast("list[Any]", stated or []):
        call = _object(item if item is not None else False, "tool call")
        function = _object(call.get("function") or call.get("custom"), "tool call's function")
        calls.append(ToolCall(_name(call.get("id")) or None, _name(function.get("name")), _arguments(function)))
    legacy = message.get("function_call")
    if not calls and isinstance(legacy, Mapping):
        function = cast("Mapping[str, Any]", legacy)
        calls.append(ToolCall(None, _name(function.get("name")), _arguments(function)))
    return calls


def _name(value: Any) -> str:
    return value if isinstance(value, str) else str(value) if type(value) is int else ""


def _arguments(function: Mapping[str, Any]) -> str:
    raw = function.get("arguments", function.get("input"))  # a custom tool is called with a text
    if raw is None:
        return ""
    return raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)  # some servers send an object


def arguments_object(arguments: str, otherwise: str = "input") -> dict[str, Any]:
    """Arguments as an object; what is none goes back under a name of its own, so that the model sees what it wrote."""
    try:
        value: Any = json.loads(arguments or "{}", strict=False)
    except ValueError:
        value = None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {otherwise: arguments}


def priced(reply: Reply, price: Price) -> Reply:
    """The reply with its cost in US dollars, if it states none itself."""
    usage = reply.usage
    if usage is None or usage.cost is not None or usage.input_tokens is None or usage.output_tokens is None:
        return reply
    read = price.of_input(usage.input_tokens, usage.cache_read_tokens or 0, usage.cache_write_tokens or 0)
    return replace(reply, usage=replace(usage, cost=read + usage.output_tokens * price.output / 1e6))
