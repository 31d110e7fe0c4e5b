"""What each format calls a token, as functions to it.

| | input tokens are | what was read from a cache | what was written to it | not known |
|---|---|---|---|---|
| ours (`Usage`) | all of the prompt | a part of them | a part of them | `None` |
| OpenTelemetry GenAI | all of the prompt | a part of them | a part of them | left out |
| Inspect | what was charged in full | apart | apart | no usage at all |

Sources: the docstring of `inspect_ai.model.ModelUsage`, and the semantic conventions' `gen_ai.usage.input_tokens`
("SHOULD include all types of input tokens, including cached tokens").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlm_loop.messages import Usage


def known(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are known."""
    return {name: value for name, value in values.items() if value is not None}


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


def to_otel(usage: Usage) -> dict[str, Any]:
    """Attributes of OpenTelemetry's GenAI conventions.

    What was written to a cache has two names: that of today, and `cache_creation`, which its Python package (0.66b2)
    still has and readers look for.
    """
    return known(
        {
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
            "gen_ai.usage.cache_write.input_tokens": usage.cache_write_tokens,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        }
    )
