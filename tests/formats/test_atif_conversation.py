"""A recorded run as the value that formats share, and back as a run: nothing that a reader of traces sees is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rlm_loop.agents.past_run import ledger_of, outcome_of
from rlm_loop.formats.traces.as_trace import record_of, write_conversations
from rlm_loop.formats.traces.from_trace import conversation_of
from rlm_loop.formats.traces.usage import (
    from_atif,
    from_inspect,
    to_atif,
    to_inspect,
    to_otel,
    to_verifiers,
)
from rlm_loop.messages import Usage
from rlm_loop.outcome import Score
from rlm_loop.report.run import run_page
from rlm_loop.traces.reader import read, read_all

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.jsonl"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_golden_run_is_the_same_after_a_way_through_the_shared_value(path: Path) -> None:
    record = read(path)
    conversation = conversation_of(record, Score(True, 0.5, "half"))
    again = record_of(conversation)
    assert replace(conversation_of(again), id=conversation.id) == conversation
    assert ledger_of(again).rows == ledger_of(record).rows
    assert outcome_of(again).turns == outcome_of(record).turns
    stated = [outcome_of(again).usage, outcome_of(record).usage, conversation.usage]
    assert [u.cost for u in stated] == [pytest.approx(stated[0].cost)] * 3  # summed in another order
    assert len({replace(u, cost=None) for u in stated}) == 1
    assert conversation.causes == ledger_of(record).by_cause()
    assert sum(conversation.causes.values()) == conversation.usage.input_tokens


def test_several_runs_are_appended_to_one_trace_and_can_be_looked_at(tmp_path: Path) -> None:
    found = [conversation_of(read(path)) for path in GOLDEN]
    out = tmp_path / "all.jsonl"
    write_conversations(found, out)
    assert [conversation_of(record).agents for record in read_all(out)] == [c.agents for c in found]
    assert "What is the sum?" in run_page(str(out))


@pytest.mark.parametrize(
    ("usage", "atif", "inspect"),
    [
        (Usage(100, 20), {"prompt_tokens": 100, "completion_tokens": 20}, (100, 120)),
        (
            Usage(100, 20, 60, 1, 0.5, 30, 5),
            {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "cached_tokens": 60,
                "cost_usd": 0.5,
                "extra": {"cache_write_tokens": 30, "reasoning_tokens": 5},
            },
            (10, 120),
        ),
        (
            Usage(100, 20, 0, 1, 0.0),
            {"prompt_tokens": 100, "completion_tokens": 20, "cached_tokens": 0, "cost_usd": 0.0},
            (100, 120),
        ),
    ],
)
def test_conventions(usage: Usage, atif: dict[str, object], inspect: tuple[int, int]) -> None:
    assert to_atif(usage) == atif
    assert from_atif(atif) == usage
    written = to_inspect(usage)
    assert written is not None
    assert (written["input_tokens"], written["total_tokens"]) == inspect  # without the cache; with it
    assert from_inspect(written) == usage
    spans = to_otel(usage)
    for names in (
        ("gen_ai.usage.input_tokens", "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_write.input_tokens"),
        (
            "llm.token_count.prompt",
            "llm.token_count.prompt_details.cache_read",
            "llm.token_count.prompt_details.cache_write",
        ),
    ):
        found = [spans.get(name) for name in names]
        assert found == [usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens]
    trained = to_verifiers(usage)
    assert trained is not None
    assert trained["prompt_tokens"] == usage.input_tokens - (usage.cache_read_tokens or 0)  # pyright: ignore
    assert trained["cached_input_tokens"] == usage.cache_read_tokens


def test_what_is_not_known_is_left_out_and_never_zero() -> None:
    unknown = Usage(None, 20)
    assert to_atif(unknown) == {"completion_tokens": 20}
    assert from_atif({"completion_tokens": 20}) == unknown
    assert from_atif({}) is None
    assert to_inspect(unknown) is None
    assert to_verifiers(unknown) is None
    assert to_otel(unknown) == {"gen_ai.usage.output_tokens": 20, "llm.token_count.completion": 20}
