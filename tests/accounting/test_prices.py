"""Prices by a model's name, of the tables that are installed."""

from __future__ import annotations

import sys

import pytest

from rlm_loop.accounting import Price, known_price


@pytest.mark.slow  # LiteLLM takes seconds to import
def test_prices_are_those_of_genai_prices_and_else_of_litellm(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("genai_prices", "litellm"):
        pytest.importorskip(package, reason='pip install -e ".[litellm]"')
    find = known_price.__wrapped__  # what is found is kept
    assert find("anthropic/claude-haiku-4-5") == Price(input=1, output=5, cached=0.1, cache_write=1.25)
    assert find("gemini/gemini-2.5-pro") == Price(input=1.25, output=10, cached=0.125)  # of short prompts
    assert find("nobody/nothing-like-this") is find("local:mine.gguf") is None
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    other = find("anthropic/claude-haiku-4-5")
    assert other is not None
    assert (other.input, other.output) == pytest.approx((1, 5))
    monkeypatch.setitem(sys.modules, "litellm", None)
    assert find("anthropic/claude-haiku-4-5") is None
