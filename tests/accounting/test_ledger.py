import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.accounting import Ledger, Part
from rlm_loop.accounting.ledger import apportion
from rlm_loop.messages import Message, Prompt, Span, ToolCall, Usage

spans = st.builds(Span, st.text(max_size=40), st.sampled_from(["system", "task", "assistant", "scaffold:thought"]))
messages = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant"]),
    st.lists(spans, max_size=3).map(tuple),
    st.lists(st.builds(ToolCall, st.just("1"), st.text(max_size=5), st.text(max_size=20)), max_size=2).map(tuple),
    st.none(),
    st.integers(0, 5),
)


@given(st.lists(messages, max_size=6), st.integers(0, 10_000), st.booleans())
def test_shares_sum_to_what_was_reported(said: list[Message], tokens: int, tools: bool) -> None:
    prompt = Prompt(tuple(said), ({"type": "function"},) if tools else ())
    parts = apportion(prompt, tokens)
    assert sum(p.tokens for p in parts) == tokens
    assert all(p.tokens >= 0 for p in parts)


def parts() -> list[Part]:
    return [
        Part("tool_schema", 0, -1, 7),
        Part("template", 0, 0, 3),
        Part("task", 0, 0, 10),
        Part("template", 1, 1, 3),
        Part("assistant", 1, 1, 5),
        Part("repl_output", 1, 2, 4),
        Part("scaffold:thought", 1, 2, 6),
        Part("template", 0, 3, 2),
    ]


def test_rows_sum_to_the_call_and_split_resent_and_cached() -> None:
    ledger = Ledger()
    call = ledger.charge(parts(), Usage(40, 9, 25), turn=2, sent_messages=1)
    assert sum(r.tokens for r in call.rows) == 40
    assert sum(r.resent for r in call.rows) == 20  # the schema and the first message
    assert sum(r.cached or 0 for r in call.rows) == 25
    cached = {(r.cause, r.origin_turn): r.cached for r in call.rows}
    # the cache holds a prefix: the schema, the first message and the marker and the start of the second
    assert cached == {
        ("tool_schema", 0): 7,
        ("template", 0): 3,
        ("task", 0): 10,
        ("template", 1): 3,
        ("assistant", 1): 2,
        ("repl_output", 1): 0,
        ("scaffold:thought", 1): 0,
    }


def test_unknown_cache_is_none_and_not_zero() -> None:
    ledger = Ledger()
    call = ledger.charge(parts(), Usage(40, 9, None), turn=1)
    assert {r.cached for r in call.rows} == {None}
    assert sum(r.resent for r in call.rows) == 0
    assert ledger.usage.cached_tokens is None


def test_frame_has_the_documented_columns_and_sums() -> None:
    ledger = Ledger()
    ledger.charge(parts(), Usage(40, 9, 0), turn=1)
    ledger.charge(parts(), Usage(40, 1, 0), turn=2, sent_messages=2)
    frame = ledger.frame()
    assert list(frame.columns) == [
        "call", "turn", "depth", "purpose", "cause", "origin_turn", "tokens", "resent", "cached", "detail", "written",
    ]  # fmt: skip
    assert frame["tokens"].sum() == ledger.usage.input_tokens == 80
    assert ledger.scaffold_tokens == 12
    assert list(Ledger().frame().columns) == list(frame.columns)


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([], ""),
        ([(True, 5)], "exact"),
        ([(True, 5), (False, 4)], "counted with another tokenizer"),
        ([(True, 5), (False, 4), (False, None)], "shared out by length"),
    ],
)
def test_it_says_how_tokens_were_counted(calls: list[tuple[bool, int | None]], said: str) -> None:
    """The least sure way names the whole, and stands wherever tokens by cause are shown."""
    from rlm_loop.report.notebook.formatting import causes_line
    from rlm_loop.report.notebook.html import causes_values

    ledger = Ledger()
    for exact, counted in calls:
        part = Part("task", 0, 0, 5)
        ledger.charge([part], Usage(5, 1), turn=1, depth=0, purpose="agent", node="0", exact=exact, counted=counted)
    assert ledger.counting == said
    for shown in (causes_values, causes_line):
        assert not calls or said in str(shown(ledger.by_cause(), ledger.counting))
