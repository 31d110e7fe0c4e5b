import pytest

from rlm_loop.accounting import Ledger, Part
from rlm_loop.messages import Usage


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


def test_the_sum_of_a_caller_is_kept_and_not_counted_out() -> None:
    ledger = Ledger()
    for node in ("0", "0.1", "0.1.0", "0.10", "0.1"):
        ledger.charge((), Usage(10, 1), turn=1, node=node)
    for counted in (ledger, Ledger(list(ledger.calls))):
        used = {node: counted.usage_of(node).calls for node in ("0", "0.1", "0.1.0", "0.10", "0.2")}
        assert used == {"0": 5, "0.1": 3, "0.1.0": 1, "0.10": 1, "0.2": 0}
        ledger.calls.clear()  # a sum does not go over the calls


def test_unknown_cache_is_none_and_not_zero() -> None:
    ledger = Ledger()
    call = ledger.charge(parts(), Usage(40, 9, None), turn=1)
    assert {r.cached for r in call.rows} == {None}
    assert sum(r.resent for r in call.rows) == 0
    assert ledger.usage.cache_read_tokens is None


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
    ledger = Ledger()
    for exact, counted in calls:
        part = Part("task", 0, 0, 5)
        ledger.charge([part], Usage(5, 1), turn=1, depth=0, purpose="agent", node="0", exact=exact, counted=counted)
    assert ledger.counting == said
    assert said in ledger._repr_html_()
