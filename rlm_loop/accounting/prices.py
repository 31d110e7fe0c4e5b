"""What tokens cost: a price, a table of prices in a file, and the tables of genai-prices and LiteLLM (not fetched)."""

from __future__ import annotations

import functools
import json
import math
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, cast

#: In a table of prices: any model that is not named.
ANY = "*"


class PriceError(ValueError):
    """Prices cannot be read or do not fit the run; the message is one line that says what to do."""


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
        for name, value in asdict(self).items():
            if value is None and name in ("cached", "cache_write"):
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise PriceError(f"{name}={value!r} is no price: give US dollars per million tokens, zero or more")

    def of_input(self, tokens: int, cached: int, written: int) -> float:
        """US dollars for the prompt tokens of a call; `written` are those that go into the cache, not out of it."""
        read = self.input if self.cached is None else self.cached
        write = self.input if self.cache_write is None else self.cache_write
        return ((tokens - cached - written) * self.input + cached * read + written * write) / 1e6


def read_prices(path: str | Path) -> dict[str, Price]:
    """A price table: JSON or TOML, by model name `{"input": 3, "cached": 0.3, "cache_write": 3.75, "output": 15}`.

    One such object alone holds for every model.  Prices are US dollars per million tokens.  Raises `PriceError`.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PriceError(f"cannot read the prices {path}: {getattr(error, 'strerror', None) or 'no text'}") from error
    try:
        if str(path).endswith(".toml"):
            import tomllib

            stored: Any = tomllib.loads(text)
        else:
            stored = json.loads(text)
    except ValueError as error:
        raise PriceError(f"{path} is neither JSON nor TOML ({error}): see docs/ledger.md for its form") from error
    if isinstance(stored, dict) and "input" in stored and not isinstance(stored["input"], dict):
        stored = {ANY: stored}
    if not isinstance(stored, dict) or not stored:
        raise PriceError(f"{path} holds no prices: see docs/ledger.md for its form")
    return {name: _read(path, name, one) for name, one in cast("dict[str, Any]", stored).items()}


def _read(path: str | Path, name: str, one: Any) -> Price:
    known = [f.name for f in fields(Price)]
    if not isinstance(one, dict) or not {"input", "output"} <= set(one) or set(one) - set(known):
        raise PriceError(f"{path}: {name} needs input and output, and may have cached and cache_write, nothing else")
    try:
        return Price(**cast("dict[str, Any]", one))
    except PriceError as error:
        raise PriceError(f"{path}: {name}: {error}") from None


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


def _of_litellm(model: str) -> Price | None:
    # Otherwise the import asks the network for a table, which takes seconds where there is none.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        import litellm
    except ImportError:
        return None
    litellm.suppress_debug_info = True  # it prints a list of its providers on stdout
    try:
        info: Any = litellm.get_model_info(model)
    except Exception:  # LiteLLM says "not in the table" with a bare Exception
        return None
    names = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost")
    found = [info.get(name) for name in (*names, "cache_creation_input_token_cost")]
    return _per_million(*(None if value is None else float(value) * 1e6 for value in found))


def _per_million(*mtok: Any) -> Price | None:
    """A price of US dollars per million tokens, `None` where what goes in or what comes out has none."""
    into, out, cached, written = (None if value is None else float(getattr(value, "base", value)) for value in mtok)
    return None if into is None or out is None else Price(into, out, cached, written)
