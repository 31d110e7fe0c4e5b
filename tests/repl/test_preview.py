"""The estimate of tokens errs on the high side, and a preview keeps to it."""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rlm_loop
from rlm_loop.models import LocalModel
from rlm_loop.models.base import ModelNotFound
from rlm_loop.models.weights import path
from rlm_loop.repl.contexts.preview import estimate_tokens, first_tokens


@given(st.text(max_size=60), st.integers(0, 40))
def test_the_beginning_is_one_and_within_its_tokens(text: str, tokens: int) -> None:
    start = first_tokens(text, tokens)
    assert text.startswith(start)
    assert estimate_tokens(start) <= tokens
    assert start == text or estimate_tokens(text) > tokens


@given(st.text(st.characters(min_codepoint=0x80), max_size=30))
def test_what_is_not_ascii_is_counted_by_its_bytes(text: str) -> None:
    assert estimate_tokens(text) == len(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("the", 1), (" the", 1), ("12,345", 6), ("the context", 2), ("a  b", 3), ("😀", 4), ("é", 2)],
)
def test_the_rule(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def _random(alphabet: str) -> Callable[[random.Random], str]:
    return lambda r: "".join(r.choice(alphabet) for _ in range(80))


def _source(r: random.Random) -> str:
    text = r.choice(sorted(Path(rlm_loop.__file__).parent.rglob("*.py"))).read_text("utf-8")
    start = r.randrange(max(1, len(text) - 80))
    return repr(text[start : start + 80])


SAMPLES: dict[str, Callable[[random.Random], str]] = {
    "letters": _random(string.ascii_letters),
    "lower case": _random(string.ascii_lowercase),
    "hexadecimal": _random("0123456789abcdef"),
    "base 64": _random(string.ascii_letters + string.digits + "+/"),
    "printable": lambda r: repr(_random(string.printable)(r)),
    "code": _source,
}


@pytest.fixture(scope="module")
def qwen() -> LocalModel:
    try:
        path("qwen2.5-coder-1.5b")
    except ModelNotFound:
        pytest.skip("qwen2.5-coder-1.5b is not here: rlm-loop models pull qwen2.5-coder-1.5b")
    return LocalModel("qwen2.5-coder-1.5b", context_size=512, threads=1)


@pytest.mark.parametrize("kind", SAMPLES)
def test_it_is_hardly_ever_less_than_what_the_tokenizer_says(qwen: LocalModel, kind: str) -> None:
    r = random.Random(1)
    texts = [SAMPLES[kind](r) for _ in range(40)]
    real = [qwen.count(t) for t in texts]
    said = [estimate_tokens(t) for t in texts]
    assert sum(said) >= sum(real)
    assert all(s >= 0.85 * t for s, t in zip(said, real, strict=True))
    assert sum(said) <= 1.9 * sum(real)
