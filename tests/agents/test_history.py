"""A long history made shorter, as a user sees it: settings, what is sent, what is on record, what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlm_loop import Budget, Compaction, LeanAgent, ReActAgent, ToolLoopAgent, tool
from rlm_loop.agents import outcome_of
from rlm_loop.messages import Prompt
from rlm_loop.models import ModelError, RecordedModel, Reply, ScriptedModel
from rlm_loop.traces import read


@tool
def page(number: int) -> str:
    """A page of the book."""
    return f"page {number} " + "word " * 200


AGENTS: dict[str, tuple[type, str, str]] = {
    "lean": (
        LeanAgent,
        '{{"name": "page", "arguments": {{"number": {n}}}}}',
        '{"name": "final_answer", "arguments": {"answer": 5}}',
    ),
    "react": (ReActAgent, 'Thought: on.\nAction: page\nAction Input: {{"number": {n}}}', "Final Answer: 5"),
}
SMALL = {"threshold_tokens": 800, "keep_turns": 2}


def turns(name: str, count: int) -> list[Any]:
    """Replies that look at so many pages and answer then; a summary is given where one is asked for."""
    _, step, answer = AGENTS[name]
    said = iter([*(step.format(n=n) for n in range(1, count + 1)), answer])
    return [lambda p: "so far: pages" if asks_for_summary(p) else next(said)] * 3 * count


def asks_for_summary(prompt: Prompt) -> bool:
    return prompt.messages[-1].text.endswith("do not answer the task.")


def run(name: str, history: Any, count: int = 8, replies: list[Any] | None = None, **settings: Any) -> Any:
    model = ScriptedModel(turns(name, count) if replies is None else replies, name="local:s")
    trace = settings.pop("trace", None)
    agent = AGENTS[name][0](model=model, tools=(page,), history=history, **settings)
    return agent.run("How many pages?", trace=trace), model


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("policy", ["drop_outputs", "window", "summary"])
def test_it_is_sent_shorter_recorded_and_driven_again(name: str, policy: Any, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    plan = Compaction(policy, **SMALL)
    outcome, model = run(name, plan, trace=file)
    plain, _ = run(name, None)
    assert (outcome.answer, outcome.steps) == (plain.answer, plain.steps)
    assert outcome.usage.input_tokens < plain.usage.input_tokens * 0.75
    assert max(sum(p.tokens for p in model.measure(prompt)) for prompt in model.prompts) <= 800
    causes = outcome.ledger.by_cause()
    assert causes["summary"] > 0
    assert "summary" not in plain.ledger.by_cause()
    assert ("compaction" in {c.purpose for c in outcome.ledger.calls}) == (policy == "summary")
    # read back
    record = read(file)
    event = record.of("compaction")[0]
    assert event["policy"] == policy
    assert event["shortened" if policy == "drop_outputs" else "left_out"][0] == 1
    past = outcome_of(record, trace=str(file))
    assert past.turns == outcome.turns
    assert past.ledger.calls == outcome.ledger.calls
    # driven again: every request is byte-equal, though the recorded model has no tokenizer
    again = RecordedModel.from_trace(file)
    second = AGENTS[name][0](model=again, tools=(page,), history=plan).run("How many pages?")
    assert again.left == 0
    assert second.answer == outcome.answer


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"history": "windw"}, "drop_outputs, window, summary"),
        ({"history": 4.0}, "max_messages"),
        ({"history": 0}, "at least 1"),
        ({"history": True}, "at least 1"),
    ],
)
def test_bad_settings_are_refused_in_one_line(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        ToolLoopAgent(**settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"policy": "forget"},
        {"threshold_tokens": 0},
        {"threshold_tokens": 1.5},
        {"keep_turns": 0},
        {"keep_turns": None},
        {"max_messages": -1},
        {"summary_tokens": 0},
        {"threshold_tokens": None},
    ],
)
def test_a_compaction_that_means_nothing_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Compaction(**fields)


def test_a_threshold_below_the_task_goes_on_with_the_least() -> None:
    outcome, model = run("lean", Compaction("window", threshold_tokens=10), count=6)
    assert outcome.answered
    turns_sent = [len({m.turn for m in p.messages if m.turn}) for p in model.prompts]
    assert turns_sent[1] == 1
    assert turns_sent == [min(n, 1) for n in range(len(turns_sent))]  # each page is more than half a threshold


def test_what_cannot_be_shortened_is_one_event_and_not_one_a_turn(tmp_path: Path) -> None:
    """The last turn alone is over the threshold, and what the next ones add is less than half of it."""
    step = '{{"name": "page", "arguments": {{"number": {n}}}}}'
    short = '{{"name": "page", "arguments": {{"numbr": {n}}}}}'
    replies = [step.format(n=1), *(short.format(n=n) for n in range(3)), AGENTS["lean"][2]]
    plan, budget = Compaction("drop_outputs", 350, 4), Budget(tool_failures=None)
    run("lean", plan, replies=replies, budget=budget, trace=tmp_path / "t")
    events = read(tmp_path / "t").of("compaction")
    assert [(e["turn"], e["over"], e["shortened"]) for e in events] == [(1, True, [])]


def test_nothing_is_spent_after_the_answer() -> None:
    """The turn that answers is over the threshold; no summary of it is asked for."""
    said = ["Thinking. " * 400 + AGENTS["lean"][2]]
    outcome, model = run("lean", Compaction("summary", threshold_tokens=300), replies=said)
    assert outcome.answered
    assert len(model.prompts) == 1


@pytest.mark.parametrize(
    ("summary", "why"),
    [
        (ModelError("the provider is down"), "the provider is down"),
        ("", "empty or withheld"),
        (Reply("x", finish_reason="content_filter"), "empty or withheld"),
    ],
)
def test_a_summary_that_cannot_be_had_is_a_window(summary: Any, why: str, tmp_path: Path) -> None:
    said = iter([*(AGENTS["lean"][1].format(n=n) for n in range(1, 4)), AGENTS["lean"][2]])
    replies = [lambda p: summary if asks_for_summary(p) else next(said)] * 8
    file = tmp_path / "run.jsonl"
    plan = Compaction("summary", 800, 1)
    outcome, model = run("lean", plan, replies=replies, trace=file)
    assert outcome.stop == "answered", outcome.reason
    event = read(file).of("compaction")[-1]
    assert (event["policy"], event["asked"]) == ("window", "summary")
    assert why in event["fallback"]
    assert "[earlier turns left out: 2]" in model.prompts[-1].messages[1].text
    again = RecordedModel.from_trace(file)
    settings: dict[str, Any] = {"tools": (page,), "history": plan}
    assert LeanAgent(model=again, presentation="text", **settings).run("How many pages?").answer == outcome.answer


def test_a_summary_goes_on_from_the_one_before() -> None:
    heard: list[str] = []

    def summary(prompt: Prompt) -> str:
        heard.append(prompt.messages[-1].text)
        return f"summary number {len(heard)}"

    said = iter([*(AGENTS["lean"][1].format(n=n) for n in range(1, 9)), AGENTS["lean"][2]])
    replies = [lambda p: summary(p) if asks_for_summary(p) else next(said)] * 30
    outcome, model = run("lean", Compaction("summary", 800, 1), replies=replies)
    assert outcome.answered
    assert len(heard) > 2
    assert "summary number 1" in heard[1]
    assert "How many pages?" in heard[1]
    last = model.prompts[-1].messages[1].text
    assert f"summary number {len(heard)}" in last
    assert last.count("summary number") == 1
    # page 1 was summarised once and not again
    assert sum("page 1 word" in text for text in heard) == 1


def test_max_history_counts_messages_and_leaves_out_no_more_than_it_has_to() -> None:
    outcome, model = run("lean", 8)
    assert outcome.answered
    assert [len(p.messages) for p in model.prompts] == [2, 4, 6, 8, 8, 8, 8, 8, 8]
    assert model.prompts[-1].messages[2].turn == 6
    both, model = run("lean", Compaction("drop_outputs", max_messages=8))
    assert both.answered
    assert max(len(p.messages) for p in model.prompts) == 8


def test_sub_agents_have_it_too() -> None:
    replies = [
        "```python\nprint(llm_query('Look at it.'))\n```",
        *(f"```python\nprint('line ' * 300, {n})\n```" for n in range(3)),
        "```python\nfinal_answer = 'seen'\n```",
        "```python\nfinal_answer = 1\n```",
    ]
    model = ScriptedModel(replies)
    plan = Compaction("drop_outputs", 700, 1)
    outcome = ToolLoopAgent(model=model, max_depth=2, history=plan).run("Ask.", context="abc")
    assert outcome.answer == 1
    assert {c.depth for c in outcome.ledger.calls if any(r.cause == "summary" for r in c.rows)} == {1}
