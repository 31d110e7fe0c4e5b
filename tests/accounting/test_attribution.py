"""What a call is charged: it sums to the bill whatever was counted, and what is missing is said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop import Budget, ToolLoopAgent
from rlm_loop.accounting import Part
from rlm_loop.accounting.attribution import UNATTRIBUTED, attribute, reconcile
from rlm_loop.messages import Message, Prompt, Reply, Span, ToolCall, Usage
from rlm_loop.models import Model, ScriptedModel
from rlm_loop.replay import ledger_of
from rlm_loop.traces import read

CAUSES = ["system", "task", "assistant", "tool_result", "scaffold:x"]
TEXTS = st.one_of(
    st.text(max_size=20),
    st.text(st.characters(codec=None, categories=["Cs", "Mn", "So", "Lo", "Zs"]), max_size=8),
    st.sampled_from(["👩‍👩‍👧‍👦", "é", "e\u0301", "\ud83d", "\x00", "\r\n", "<|im_end|>", " "]),
)
MESSAGES = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    st.lists(st.builds(Span, TEXTS, st.sampled_from(CAUSES)), max_size=3).map(tuple),
    st.lists(st.builds(ToolCall, st.just("1"), TEXTS, TEXTS), max_size=2).map(tuple),
    st.none(),
    st.integers(0, 4),
)
TOOLS = st.lists(st.fixed_dictionaries({"type": st.just("function"), "function": st.dictionaries(TEXTS, TEXTS)}))
PROMPTS = st.builds(
    lambda messages, tools: Prompt(tuple(messages), tuple(tools)), st.lists(MESSAGES, max_size=5), TOOLS
)
FIGURES = st.one_of(st.none(), st.integers(-3, 400))
PARTS = st.lists(
    st.builds(Part, st.sampled_from(CAUSES), st.integers(0, 3), st.integers(-1, 4), st.integers(0, 60)), max_size=8
)


@given(PROMPTS, st.one_of(st.none(), PARTS), st.one_of(st.none(), st.builds(Usage, FIGURES, FIGURES, FIGURES)))
def test_the_parts_sum_to_the_bill_whatever_was_counted(prompt: Prompt, measured: Any, usage: Usage | None) -> None:
    found = attribute(prompt, measured, usage)
    total = found.usage.input_tokens
    assert all(p.tokens >= 0 for p in found.parts)
    if total is not None:
        assert sum(p.tokens for p in found.parts) == total
    elif measured:
        assert list(found.parts) == measured  # unknown tokens are not invented, and counted ones not thrown away
    if measured and total is not None and found.counted is not None and total >= found.counted:
        assert list(found.parts[: len(measured)]) == measured
        assert sum(p.tokens for p in found.parts if p.cause == UNATTRIBUTED) == total - found.counted
    assert found.exact == (found.counted is not None and found.counted == total)
    impossible = usage is not None and found.usage != usage
    assert bool(found.usage_warning) == (impossible or total is None or (found.counted or 0) > total)


def test_too_few_counted_leaves_unattributed_ones_and_too_many_are_scaled_down() -> None:
    parts = [Part("system", 0, 0, 30), Part("task", 0, 1, 71)]
    assert reconcile(parts, 120) == [*parts, Part(UNATTRIBUTED, 0, 1, 19)]
    assert reconcile(parts, 50) == [Part("system", 0, 0, 14), Part("task", 0, 1, 35), Part(UNATTRIBUTED, 0, 1, 1)]
    assert reconcile(parts, 0) == [Part("system", 0, 0, 0), Part("task", 0, 1, 0)]


@pytest.mark.parametrize(
    ("usage", "known", "said"),
    [
        (None, Usage(None, None), "no usage reported"),
        (Usage(None, 3), Usage(None, 3), "no prompt tokens reported"),
        (Usage(-5, 3), Usage(None, 3), "input_tokens -5"),
        (Usage(5, 3, 9), Usage(5, 3, None), "cache_read_tokens 9 of 5"),
        (Usage(5, 3, cost=float("nan")), Usage(5, 3), "cost nan"),
        (Usage(5, 3, reasoning_tokens=4), Usage(5, 3), "reasoning_tokens 4 of 3"),
        (Usage(5, 3, cache_write_tokens=6), Usage(5, 3), "cache_write_tokens 6 of 5"),
        (Usage(5, 3, 5), Usage(5, 3, 5), ""),
        (Usage(0, 0, 0), Usage(0, 0, 0), ""),
    ],
)
def test_a_usage_that_is_missing_or_cannot_be(usage: Usage | None, known: Usage, said: str) -> None:
    account = attribute(Prompt(), None, usage)
    assert (account.usage, bool(account.usage_warning)) == (known, bool(said))
    assert said in account.usage_warning


class Uncounted(Model):
    """Reports what its replies state, and has no tokenizer."""

    name, price = "uncounted", (0.0, 0.0)

    def __init__(self, replies: Iterator[Reply]) -> None:
        self._replies = replies

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        return next(self._replies)


class Counted(Uncounted):
    def measure(self, prompt: Prompt) -> Sequence[Part]:
        return ScriptedModel([]).measure(prompt)


STEP, ANSWER = "```python\nprint({})\n```", "```python\nfinal_answer = 3\n```"
WRONG: dict[str, tuple[list[Any], int, int]] = {
    "none": ([None] * 3, 3, 3),
    "empty": ([Usage(None, None)] * 3, 3, 3),
    "far off": ([Usage(500, 5), Usage(3, 5), Usage(0, 5)], 2, 0),
    "impossible": ([Usage(-7, 5, 2), Usage(90, -5, 99), Usage(200, 5, None)], 2, 2),
}


@pytest.mark.parametrize("kind", [Counted, Uncounted])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_run_with_a_wrong_usage_loses_nothing(kind: type[Uncounted], wrong: str, tmp_path: Path) -> None:
    usages, *warnings = WRONG[wrong]
    texts = [STEP.format(1), STEP.format(2), ANSWER]
    model = kind(Reply(text, usage=usage) for text, usage in zip(texts, usages, strict=True))
    live = ToolLoopAgent(model=model, budget=Budget(steps=3)).run("Count.", trace=tmp_path / "t.jsonl")
    record = read(tmp_path / "t.jsonl")
    assert (live.answer, ledger_of(record).calls) == (3, live.ledger.calls)
    assert [reply.usage for _, _, reply in record.replies()] == usages  # as it came
    for call in live.ledger.calls:
        charged, stated = sum(r.tokens for r in call.rows), call.usage.input_tokens
        assert charged == stated if stated is not None else (charged > 0) == (kind is Counted)
        assert not call.exact
    assert len(live.ledger.usage_warnings()) == warnings[kind is Uncounted]
    assert "re-sent" in live.ledger._repr_html_()


def test_messages_that_compaction_moved_forward_are_re_sent(tmp_path: Path) -> None:
    model = ScriptedModel([STEP.format(n) for n in range(10, 16)])
    agent = ToolLoopAgent(model=model, budget=Budget(steps=6), history=6)
    live = agent.run("Count.", trace=tmp_path / "t.jsonl")
    record, last = read(tmp_path / "t.jsonl"), live.ledger.calls[-1]
    assert (ledger_of(record).calls, record.of("compaction") != []) == (live.ledger.calls, True)
    for row in last.rows:
        if row.cause in ("system", "task", "assistant", "repl_output"):
            assert row.resent == (0 if row.origin_turn == last.turn - 1 else row.tokens), row


def test_a_sub_call_re_sends_nothing_and_counts_to_the_turn_that_made_it() -> None:
    ask = STEP.format('llm_query("one"), llm_query("two")')
    model = ScriptedModel([STEP.format(1), ask, "eins", "zwei", ANSWER])
    live = ToolLoopAgent(model=model, budget=Budget(steps=4), max_depth=1, repl="subprocess").run("Count.")
    assert [sum(row.resent for row in call.rows) for call in live.ledger.calls if call.depth] == [0, 0]
