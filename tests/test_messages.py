"""Values that are said: how they are sent and hashed."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.messages import Message, Prompt, Span, ToolCall, Usage, digest

TEXTS = st.text(st.characters(codec=None), max_size=12)  # lone surrogates too
MESSAGES = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    st.lists(st.builds(Span, TEXTS, st.sampled_from(["task", "assistant"])), max_size=3).map(tuple),
    st.lists(st.builds(ToolCall, st.none() | TEXTS, TEXTS, TEXTS), max_size=2).map(tuple),
    st.none() | TEXTS,
    st.integers(0, 4),
)
SCHEMAS = st.dictionaries(TEXTS, TEXTS | st.integers() | st.floats() | st.dictionaries(TEXTS, TEXTS), max_size=3)
PROMPTS = st.builds(
    Prompt,
    *(st.lists(part, max_size=most).map(tuple) for part, most in ((MESSAGES, 4), (SCHEMAS, 2), (TEXTS, 2))),
    st.none() | SCHEMAS,
)


@given(PROMPTS, st.lists(MESSAGES, max_size=2))
def test_a_prompt_is_hashed_as_the_body_that_is_sent(prompt: Prompt, more: list[Message]) -> None:
    for one in (prompt, prompt + more):  # what was worked out for its messages is kept, and has to be theirs
        assert one.digest == digest(one.to_dict())


def test_the_order_of_keys_makes_no_difference_and_every_part_does() -> None:
    def of(**more: Any) -> str:
        return Prompt((Message("user", (Span("a", "task"),)),), **more).digest

    assert of(tools=({"a": 1, "b": 2},)) == of(tools=({"b": 2, "a": 1},))
    assert len({of(), of(tools=({},)), of(stop=("x",)), of(reply_schema={}), Prompt().digest}) == 5


NUMBERS = st.none() | st.integers(0, 10**9)
USAGES = st.builds(Usage, NUMBERS, NUMBERS, NUMBERS, st.integers(0, 9), NUMBERS, NUMBERS, NUMBERS)


@given(USAGES, USAGES)
def test_a_sum_of_usages_is_not_known_where_a_part_is_not(one: Usage, other: Usage) -> None:
    whole = one + other
    for name, value in vars(whole).items():
        parts = getattr(one, name), getattr(other, name)
        assert value == (None if None in parts else sum(parts))
    assert one + Usage.NOTHING == one


@given(USAGES)
def test_a_usage_is_read_back_from_a_trace_also_from_an_old_one(usage: Usage) -> None:
    stored = {"is": "Usage", **asdict(usage)}
    assert Usage.of(json.loads(json.dumps(stored))) == usage
    old = {k: stored[k] for k in ("is", "input_tokens", "output_tokens", "calls", "cost")}
    read = Usage.of({**old, "cached_tokens": usage.cache_read_tokens})
    assert read == replace(usage, cache_write_tokens=None, reasoning_tokens=None)
