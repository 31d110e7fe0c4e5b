"""Prices of tokens, and the tables of genai-prices (not fetched)."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

from rlm_loop.messages import Usage


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens: prompt tokens (`input`), those read from a cache, those written to one, `output`.

    `cached=None`: no discount, cached tokens cost what others do.  `cache_write=None`: writing costs nothing extra.
    """

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not 0 <= value < math.inf:
                raise ValueError(f"{name} must be US dollars per million tokens, zero or more, got {value!r}")

    def of(self, usage: Usage) -> float | None:
        """US dollars for a usage; `None` where it does not state what went in or what came out."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
        read = (self.input if self.cached is None else self.cached) * cached
        write = (self.input if self.cache_write is None else self.cache_write) * written
        new = (usage.input_tokens - cached - written) * self.input
        return (new + read + write + usage.output_tokens * self.output) / 1e6


@functools.cache
def known_price(model: str) -> Price | None:
    """The price of a model by its name, as `openai/gpt-5-nano`; `None` where genai-prices is not installed or has none.

    Of prices by length of the prompt it is the one of short prompts.
    """
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    provider, _, name = model.partition("/")
    if not name:  # a bare name says nothing of who serves it
        return None
    try:
        found: Any = calc_price(Usage(), name, provider_id=provider).model_price
    except LookupError:
        return None
    prices = found.input_mtok, found.output_mtok, found.cache_read_mtok, found.cache_write_mtok
    into, out, cached, written = (None if p is None else float(getattr(p, "base", p)) for p in prices)
    return None if into is None or out is None else Price(into, out, cached, written)
