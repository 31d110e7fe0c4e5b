"""The chat-completions wire format: from a response body to a `Reply`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast, get_args

from rlm_loop.messages import FinishReason, Reply, ToolCall, Usage
from rlm_loop.models.base import ModelError
from rlm_loop.traces.received import shown

#: Raised by code that expects one shape and gets a server's data of another.
ODD = (TypeError, ValueError, AttributeError, LookupError)
_FINISH: dict[str, FinishReason] = {reason: reason for reason in get_args(FinishReason)}
_FINISH["max_tokens"] = "length"
#: The places of a figure in a `usage` object, the first that is there: OpenAI's, by their names in responses
#: (`input_tokens` for `prompt_tokens`), then those of DeepSeek, OpenRouter and LiteLLM.
_FIGURES = {
    "input_tokens": ("input_tokens",),
    "output_tokens": ("output_tokens",),
    "cache_read_tokens": ("input_tokens_details.cached_tokens", "prompt_cache_hit_tokens"),
    "cache_write_tokens": ("input_tokens_details.cache_write_tokens", "input_tokens_details.cache_creation_tokens"),
    "reasoning_tokens": ("output_tokens_details.reasoning_tokens",),
}
_MOST = 10**15  # of tokens, or dollars: what is more is no figure


def to_reply(body: Any, *, model: str = "") -> Reply:
    """Read a chat-completions response.

    Missing content is `""`; a refusal in its place counts as withheld by a filter.  Whatever has no place in `Reply`
    (ids, timings, reasoning, refusals, log probabilities, the usage) stays in `extra` as it came.  Raises `ModelError`
    (retryable) for a body that is no completion.
    """
    try:
        choice = body["choices"][0]
        message = {} if choice.get("message") is None else choice["message"]
        text, calls = text_of(message.get("content")), tuple(map(_tool_call, message.get("tool_calls") or ()))
        stated = choice.get("finish_reason")
        finish = _FINISH.get(stated, "tool_calls" if calls else "stop")
        own = message.get("provider_specific_fields") or {}  # where LiteLLM has it
        if not text and not calls and (message.get("refusal") or own.get("refusal")):
            finish = "content_filter"
        extra = {key: value for key, value in body.items() if key not in ("choices", "object") and value is not None}
        more = {k: v for k, v in message.items() if k not in ("role", "content", "tool_calls") and v is not None}
    except ODD as error:
        raise ModelError(f"{model} sent no completion but {shown(body)[:200]}", model, True) from error
    extra |= {"message": more} if more else {}
    extra |= {} if stated in _FINISH else {"finish_reason": stated}
    return Reply(text, calls, finish, to_usage(body.get("usage")), extra=extra)


def to_usage(stated: Any) -> Usage:
    """Read a `usage` object of the chat API; what it does not state is `None`, never zero.

    There `prompt_tokens` hold what was read from a cache and written to it, and `completion_tokens` what was thought.
    """
    if not isinstance(stated, Mapping):
        return Usage()
    flat: dict[str, Any] = {}
    for name, value in cast("Mapping[str, Any]", stated).items():
        key = name.replace("prompt_tokens", "input_tokens").replace("completion_tokens", "output_tokens")
        flat |= {f"{key}.{k}": v for k, v in value.items()} if isinstance(value, Mapping) else {key: value}  # pyright: ignore
    usage: dict[str, Any] = {
        name: whole(next((flat[k] for k in places if flat.get(k) is not None), None))
        for name, places in _FIGURES.items()
    }
    thought, total = usage["reasoning_tokens"], whole(flat.get("total_tokens"))
    without = (usage["input_tokens"] or 0) + (usage["output_tokens"] or 0)
    if thought and without != total == without + thought:  # xAI's, and Gemini's in this form, have it beside the text
        usage["output_tokens"] = (usage["output_tokens"] or 0) + thought
    return Usage(**usage, cost=_number(flat.get("cost")))  # stated by OpenRouter and some gateways


def _number(value: Any) -> float | None:
    """Return a number as it is; `True`, NaN, infinity and what no account can be are none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_MOST < value < _MOST:
        return None
    return float(value)


def whole(value: Any) -> int | None:
    """Return a number of tokens, `None` for what is none."""
    number = _number(value)
    return None if number is None else int(number)


def text_of(content: Any) -> str:
    """Read content: a string, `None`, or a list of typed parts of which the text counts; raises one of `ODD`."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join([part if isinstance(part, str) else part.get("text") or "" for part in content])


def _tool_call(call: Any) -> ToolCall:
    """Read a call.  Raises one of `ODD` for what is none."""
    function = call.get("function") or {}
    written = arguments_text(function.get("arguments"))
    return ToolCall(str(call.get("id") or "") or None, str(function.get("name") or ""), written)


def arguments_text(arguments: Any) -> str:
    """Return arguments as text; some servers send an object."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def arguments_object(arguments: str) -> dict[str, Any]:
    """Return arguments as an object; what is none goes back as `input`, so that the model sees what it wrote."""
    try:
        value: Any = json.loads(arguments or "{}", strict=False)
    except ValueError:
        value = None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"input": arguments}
