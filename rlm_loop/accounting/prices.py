"""Prices of tokens, and the tables of genai-prices and LiteLLM (not fetched)."""

from __future__ import annotations

import functools
import math
import os
import threading
from dataclasses import dataclass
from typing import Any

from rlm_loop.messages import Usage

_importing = threading.Lock()


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
    """The price of a model by its name, as `openai/gpt-5-nano`; `None` where no table that is installed has it.

    Of prices by length of the prompt it is the one of short prompts.
    """
    return _of_genai_prices(model) or _of_litellm(model)


def _of_genai_prices(model: str) -> Price | None:
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
    return _per_million(found.input_mtok, found.output_mtok, found.cache_read_mtok, found.cache_write_mtok)


def quiet_litellm() -> Any:
    """Return LiteLLM, which then prints no hints on stdout.  Raises `ImportError` without it."""
    with _importing:
        # Otherwise the import asks the network for a price table, which takes seconds where there is none.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        import litellm

        litellm.suppress_debug_info = True
        return litellm


def _of_litellm(model: str) -> Price | None:
    try:
        info = quiet_litellm().get_model_info(model)
    except Exception:  # LiteLLM is not installed, or says "not in the table" with a bare Exception
        return None
    names = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost")
    found = [info.get(name) for name in (*names, "cache_creation_input_token_cost")]
    return _per_million(*(None if value is None else float(value) * 1e6 for value in found))


def _per_million(*mtok: Any) -> Price | None:
    """A price of US dollars per million tokens, `None` where what goes in or what comes out has none."""
    into, out, cached, written = (None if value is None else float(getattr(value, "base", value)) for value in mtok)
    return None if into is None or out is None else Price(into, out, cached, written)
