"""What a call is charged: it sums to the bill whatever was counted, and what is missing is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
    st.text(
        st.characters(codec=None, categories=["Cs", "Mn", "So", "Lo", "Zs"]), max_size=8
    ),  # surrogates, marks, emoji
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
def test_the_parts_sum_to_the_bill_whatever_was_counted_and_reported(
    prompt: Prompt, measured: list[Part] | None, usage: Usage | None
) -> None:
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
    assert bool(found.usage_warning) == (
        usage is None
        or total is None
        or (found.counted or 0) > total
        or found.usage != usage  # a figure that cannot be
    )


def test_too_few_counted_leaves_unattributed_ones_and_too_many_are_scaled_down() -> None:
    parts = [Part("system", 0, 0, 30), Part("task", 0, 1, 71)]
    assert reconcile(parts, 101) == parts
    assert reconcile(parts, 120) == [*parts, Part(UNATTRIBUTED, 0, 1, 19)]
    assert reconcile(parts, 50) == [Part("system", 0, 0, 14), Part("task", 0, 1, 35), Part(UNATTRIBUTED, 0, 1, 1)]
    assert reconcile(parts, 0) == [Part("system", 0, 0, 0), Part("task", 0, 1, 0)]
    assert reconcile([], 5) == [Part(UNATTRIBUTED, 0, 0, 5)]


@pytest.mark.parametrize(
    ("usage", "known", "usage_warning"),
    [
        (None, Usage(None, None), "no usage reported"),
        (Usage(None, 3), Usage(None, 3), "no prompt tokens reported"),
        (Usage(-5, 3), Usage(None, 3), "impossible figures, taken as not known: input_tokens -5"),
        (Usage(5, 3, 9), Usage(5, 3, None), "impossible figures, taken as not known: cache_read_tokens 9 of 5"),
        (Usage(5, 3, cost=float("nan")), Usage(5, 3), "impossible figures, taken as not known: cost nan"),
        (
            Usage(5, 3, reasoning_tokens=4),
            Usage(5, 3),
            "impossible figures, taken as not known: reasoning_tokens 4 of 3",
        ),
        (
            Usage(5, 3, cache_write_tokens=6),
            Usage(5, 3),
            "impossible figures, taken as not known: cache_write_tokens 6 of 5",
        ),
        (Usage(5, 3, 5), Usage(5, 3, 5), ""),
        (Usage(0, 0, 0), Usage(0, 0, 0), ""),
    ],
)
def test_a_usage_that_is_missing_or_cannot_be(usage: Usage | None, known: Usage, usage_warning: str) -> None:
    account = attribute(Prompt(), None, usage)
    assert (account.usage, account.usage_warning) == (known, usage_warning)


@dataclass
class Counting(Model):
    """A scripted model whose own counts and reports are given."""

    replies: list[Reply]
    counts: bool = True

    def __post_init__(self) -> None:
        self._inner, self.name, self.price = ScriptedModel(self.replies), "counting", (0.0, 0.0)

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        given = self._inner.complete(prompt)
        return self.replies[len(self._inner.prompts) - 1] if self.replies else given


class Measured(Counting):
    def measure(self, prompt: Prompt) -> Sequence[Part]:
        return self._inner.measure(prompt)


STEP = "```python\nprint(1)\n```"
WRONG: list[Any] = [
    [None, None, None],
    [Usage(None, None)] * 3,
    [Usage(500, 5), Usage(3, 5), Usage(0, 5)],
    [Usage(-7, 5, 2), Usage(90, -5, 99), Usage(200, 5, None)],
]


@pytest.mark.parametrize("kind", [Measured, Counting])
@pytest.mark.parametrize("usages", WRONG, ids=["none", "empty", "far off", "impossible"])
def test_a_run_with_a_wrong_usage_loses_nothing(kind: type[Counting], usages: list[Any], tmp_path: Path) -> None:
    texts = [STEP, STEP.replace("1", "2"), "```python\nfinal_answer = 3\n```"]
    model = kind([Reply(t, usage=u) for t, u in zip(texts, usages, strict=True)])
    live = ToolLoopAgent(model=model, budget=Budget(steps=3)).run("Count.", trace=tmp_path / "t.jsonl")
    assert live.answer == 3
    record = read(tmp_path / "t.jsonl")
    assert ledger_of(record).calls == live.ledger.calls
    assert [reply.usage for _, _, reply in record.replies()] == usages  # as it came
    for call in live.ledger.calls:
        charged = sum(r.tokens for r in call.rows)
        if call.usage.input_tokens is not None:
            assert charged == call.usage.input_tokens
        else:
            assert (charged > 0) == (kind is Measured)
        assert not call.exact
    assert (
        len(live.ledger.usage_warnings())
        == (3 if usages[0] is None or usages[0].input_tokens is None else 2)
        - (kind is Counting and usages[0] == Usage(500, 5)) * 2
    )
    assert "re-sent" in live.ledger._repr_html_()


def test_messages_that_compaction_moved_forward_are_re_sent(tmp_path: Path) -> None:
    texts = [STEP.replace("1", str(i)) for i in range(10, 16)]
    agent = ToolLoopAgent(
        model=ScriptedModel(texts),
        budget=Budget(steps=6),
        history=6,
    )
    live = agent.run("Count.", trace=tmp_path / "t.jsonl")
    assert ledger_of(read(tmp_path / "t.jsonl")).calls == live.ledger.calls
    last = live.ledger.calls[-1]
    assert read(tmp_path / "t.jsonl").of("compaction")
    for row in last.rows:
        if row.cause in ("system", "task", "assistant", "repl_output"):
            new = row.origin_turn == last.turn - 1
            assert row.resent == (0 if new else row.tokens), row


def test_a_sub_call_re_sends_nothing_and_counts_to_the_turn_that_made_it(tmp_path: Path) -> None:
    ask = '```python\nprint(llm_query("one"), llm_query("two"))\n```'
    model = ScriptedModel([STEP, ask, "eins", "zwei", "```python\nfinal_answer = 1\n```"])
    live = ToolLoopAgent(model=model, budget=Budget(steps=4), max_depth=1, repl="subprocess").run("Count.")
    below = [call for call in live.ledger.calls if call.depth]
    assert len(below) == 2
    assert all(row.resent == 0 for call in below for row in call.rows)
