"""How long a prompt is before it is sent."""

from __future__ import annotations

from typing import Any

from rlm_loop.accounting.attribution import Part
from rlm_loop.messages import Prompt
from rlm_loop.models.base import Model


def measured(model: Model, prompt: Prompt) -> list[Part] | None:
    """The parts of the prompt, where the model can measure it (it is a `Measuring`)."""
    measure: Any = getattr(model, "measure", None)  # isinstance() with a protocol costs 15 us, in every call of a run
    return None if measure is None else list(measure(prompt))


def prompt_tokens(model: Model, prompt: Prompt) -> int:
    """Prompt tokens, template included: counted where the model can count, else as recorded, else estimated.

    The estimate takes a token to be three characters, to be on the safe side.
    """
    parts = measured(model, prompt)
    return size_unmeasured(model, prompt) if parts is None else sum(part.tokens for part in parts)


def size_unmeasured(model: Model, prompt: Prompt) -> int:
    """Prompt tokens of a model that cannot count: as it remembers them, else estimated.

    A recorded model has `recorded_size` (`None`: not known), so that what was decided by length is decided alike again.
    """
    remembered: Any = getattr(model, "recorded_size", None)
    known: int | None = None if remembered is None else remembered(prompt)
    return _estimate(prompt) if known is None else known


def _estimate(prompt: Prompt) -> int:
    texts = sum([len(span.text) for m in prompt.messages for span in m.spans])
    calls = sum([len(call.arguments) for m in prompt.messages for call in m.tool_calls])
    tools = sum([len(str(dict(t))) for t in prompt.tools])
    return (texts + calls + tools + 12 * len(prompt.messages)) // 3 + 1
