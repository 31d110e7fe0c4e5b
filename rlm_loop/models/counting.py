"""How long a prompt is before it is sent."""

from __future__ import annotations

from rlm_loop.messages import Prompt
from rlm_loop.models.base import Measuring, Model, Remembering


def prompt_tokens(model: Model, prompt: Prompt) -> int:
    """Prompt tokens, template included: counted where the model can count, else as recorded, else estimated.

    The estimate takes a token to be three characters, to be on the safe side.
    """
    if isinstance(model, Measuring):
        return sum(part.tokens for part in model.measure(prompt))
    known = model.recorded_size(prompt) if isinstance(model, Remembering) else None
    return _estimate(prompt) if known is None else known


def _estimate(prompt: Prompt) -> int:
    characters = sum(len(m.text) + sum(len(c.arguments) for c in m.tool_calls) + 12 for m in prompt.messages)
    return (characters + sum(len(str(dict(t))) for t in prompt.tools)) // 3 + 1
