"""What each format calls a token, as functions to it and from it.

| | input tokens are | what was read from a cache | what was written to it | not known |
|---|---|---|---|---|
| ours (`Usage`) | all of the prompt | a part of them | a part of them | `None` |
| ATIF | all of the prompt | a part of them | no field: under `extra` | left out |
| OpenTelemetry GenAI, OpenInference | all of the prompt | a part of them | a part of them | left out |
| Inspect | what was charged in full | apart | apart | no usage at all |
| verifiers | what was not read from a cache | apart | a part of them | no usage at all |

Sources: the field descriptions of `atif.Metrics`, the docstrings of `inspect_ai.model.ModelUsage` and of
`verifiers.v1.types.Usage`, and the semantic conventions' `gen_ai.usage.input_tokens` ("SHOULD include all types of
input tokens, including cached tokens").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlm_loop.messages import Usage


def known(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are known."""
    return {name: value for name, value in values.items() if value is not None}


def to_atif(usage: Usage) -> dict[str, Any]:
    """ATIF's metrics of a step; what has no field of its own is under `extra`."""
    extra = known({"cache_write_tokens": usage.cache_write_tokens, "reasoning_tokens": usage.reasoning_tokens})
    return known(
        {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "cached_tokens": usage.cache_read_tokens,
            "cost_usd": usage.cost,
            "extra": extra or None,
        }
    )


def from_atif(metrics: Mapping[str, Any], calls: int = 1) -> Usage | None:
    """The usage of a step's metrics, which stand for that many calls; `None` where they have no figure."""
    extra: Mapping[str, Any] = metrics.get("extra") or {}
    usage = Usage(
        metrics.get("prompt_tokens"),
        metrics.get("completion_tokens"),
        metrics.get("cached_tokens"),
        calls,
        metrics.get("cost_usd"),
        extra.get("cache_write_tokens"),
        extra.get("reasoning_tokens"),
    )
    return None if usage == Usage(calls=calls) else usage


def to_inspect(usage: Usage) -> dict[str, Any] | None:
    """The fields of Inspect's `ModelUsage`; `None` where input or output is not known, which it cannot say."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    apart = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    return {
        "input_tokens": usage.input_tokens - apart,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "input_tokens_cache_write": usage.cache_write_tokens,
        "input_tokens_cache_read": usage.cache_read_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "total_cost": usage.cost,
    }


def from_inspect(usage: Mapping[str, Any], calls: int = 1) -> Usage:
    """The usage of a `ModelUsage` by its fields."""
    read, written = usage.get("input_tokens_cache_read"), usage.get("input_tokens_cache_write")
    return Usage(
        int(usage["input_tokens"]) + (read or 0) + (written or 0),
        int(usage["output_tokens"]),
        read,
        calls,
        usage.get("total_cost"),
        written,
        usage.get("reasoning_tokens"),
    )


def to_verifiers(usage: Usage) -> dict[str, Any] | None:
    """The fields of verifiers' `Usage`; `None` where input or output is not known, which it cannot say."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return {
        "prompt_tokens": usage.input_tokens - (usage.cache_read_tokens or 0),
        "completion_tokens": usage.output_tokens,
        "cached_input_tokens": usage.cache_read_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cost": usage.cost,
    }


def to_otel(usage: Usage) -> dict[str, Any]:
    """Attributes of OpenTelemetry's GenAI conventions, and of OpenInference, which Phoenix reads.

    What was written to a cache has two names: that of today, and `cache_creation`, which its Python package (0.66b2)
    still has and readers look for.
    """
    total = usage.total_tokens
    return known(
        {
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
            "gen_ai.usage.cache_write.input_tokens": usage.cache_write_tokens,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
            "llm.token_count.prompt": usage.input_tokens,
            "llm.token_count.completion": usage.output_tokens,
            "llm.token_count.total": total,
            "llm.token_count.prompt_details.cache_read": usage.cache_read_tokens,
            "llm.token_count.prompt_details.cache_write": usage.cache_write_tokens,
            "llm.token_count.completion_details.reasoning": usage.reasoning_tokens,
            "llm.cost.total": usage.cost,
        }
    )
