"""A long history made shorter, as a user sees it: what is sent, what is on record, what it costs; a full window."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import Compaction, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.agents import Agent, outcome_of
from rlm_loop.messages import Prompt
from rlm_loop.models import ModelError, RecordedModel, Reply, RequestRejected, ScriptedModel
from rlm_loop.replay import replay
from rlm_loop.traces import read
from tests.agents.replies import LOCAL, cell, code, final, named, react, written

page = named("page", lambda number: f"page {number} " + "word " * 200)
LAST = written("final_answer", answer=5)


def asks_for_summary(prompt: Prompt) -> bool:
    return prompt.messages[-1].text.endswith("do not answer the task.")


def pages(count: int, summary: Any = "so far: pages", agent: type[Agent] = LeanAgent) -> list[Any]:
    """Replies that look at so many pages and answer then; a summary is given where one is asked for."""
    say, last = (react, "Final Answer: 5") if agent is ReActAgent else (written, LAST)
    said = iter([*(say("page", number=n) for n in range(1, count + 1)), last])
    return [lambda p: (summary(p) if callable(summary) else summary) if asks_for_summary(p) else next(said)] * 30


def run(
    history: Any, replies: list[Any], agent: type[Agent] = LeanAgent, trace: Any = None, **settings: Any
) -> tuple[Any, Any]:
    model = ScriptedModel(replies, name=LOCAL)
    made = agent(model=model, tools=(page,), history=history, **settings)
    return made.run("How many pages?", trace=trace), model


@pytest.mark.parametrize("agent", [LeanAgent, ReActAgent])
@pytest.mark.parametrize("policy", ["drop_outputs", "window", "summary"])
def test_it_is_sent_shorter_recorded_and_driven_again(agent: type[Agent], policy: Any, tmp_path: Path) -> None:
    file, plan = tmp_path / "run.jsonl", Compaction(policy, threshold_tokens=800, keep_turns=2)
    outcome, model = run(plan, pages(8, agent=agent), agent, trace=file)
    plain, _ = run(None, pages(8, agent=agent), agent)
    assert (outcome.answer, outcome.steps) == (plain.answer, plain.steps)
    assert outcome.usage.input_tokens < plain.usage.input_tokens * 0.75
    assert max(sum(p.tokens for p in model.measure(prompt)) for prompt in model.prompts) <= 800
    assert outcome.ledger.by_cause()["summary"] > 0
    assert "summary" not in plain.ledger.by_cause()
    assert ("compaction" in {c.purpose for c in outcome.ledger.calls}) == (policy == "summary")
    record = read(file)
    event = record.of("compaction")[0]
    assert event["policy"] == policy
    assert event["shortened" if policy == "drop_outputs" else "left_out"][0] == 1
    past = outcome_of(record, trace=str(file))
    assert (past.turns, past.ledger.calls) == (outcome.turns, outcome.ledger.calls)
    # driven again: every request is byte-equal, though the recorded model has no tokenizer
    again = RecordedModel.from_trace(file)
    second = agent(model=again, tools=(page,), history=plan).run("How many pages?")
    assert (len(again.prompts), second.answer) == (len([*record.replies()]), outcome.answer)


def test_nothing_is_spent_after_the_answer() -> None:
    """The turn that answers is over the threshold; no summary of it is asked for."""
    outcome, model = run(Compaction("summary", threshold_tokens=300), ["Thinking. " * 400 + LAST])
    assert (outcome.answered, len(model.prompts)) == (True, 1)


@pytest.mark.parametrize(
    ("summary", "why"),
    [
        (ModelError("the provider is down"), "the provider is down"),
        ("", "empty or withheld"),
        (Reply("x", finish_reason="content_filter"), "empty or withheld"),
    ],
)
def test_a_summary_that_cannot_be_had_is_a_window(summary: Any, why: str, tmp_path: Path) -> None:
    file, plan = tmp_path / "run.jsonl", Compaction("summary", 800, 1)
    outcome, model = run(plan, pages(3, summary), trace=file)
    event = read(file).of("compaction")[-1]
    assert (event["policy"], event["asked"], outcome.stop) == ("window", "summary", "answered")
    assert why in event["fallback"]
    assert "[earlier turns left out: 2]" in model.prompts[-1].messages[1].text


def test_a_summary_goes_on_from_the_one_before() -> None:
    heard: list[str] = []

    def summary(prompt: Prompt) -> str:
        heard.append(prompt.messages[-1].text)
        return f"summary number {len(heard)}"

    outcome, model = run(Compaction("summary", 800, 1), pages(8, summary))
    assert (outcome.answered, len(heard) > 2) == (True, True)
    assert [part in heard[1] for part in ("summary number 1", "How many pages?")] == [True, True]
    last = model.prompts[-1].messages[1].text
    assert (f"summary number {len(heard)}" in last, last.count("summary number")) == (True, 1)
    assert sum("page 1 word" in text for text in heard) == 1  # it was summarised once and not again


def test_max_history_counts_messages_and_leaves_out_no_more_than_it_has_to() -> None:
    _, model = run(8, pages(8))
    assert [len(p.messages) for p in model.prompts] == [2, 4, 6, 8, 8, 8, 8, 8, 8]
    assert model.prompts[-1].messages[2].turn == 6
    _, model = run(Compaction("drop_outputs", max_messages=8), pages(8))
    assert max(len(p.messages) for p in model.prompts) == 8


def test_sub_agents_have_it_too() -> None:
    cells = ["print(llm_query('Look at it.'))", *(f"print('line ' * 300, {n})" for n in range(3))]
    model = ScriptedModel([code(cell) for cell in (*cells, "final_answer = 'seen'", "final_answer = 1")])
    plan = Compaction("drop_outputs", 700, 1)
    outcome = ToolLoopAgent(model=model, max_depth=2, history=plan).run("Ask.", context="abc")
    assert outcome.answer == 1
    assert {c.depth for c in outcome.ledger.calls if any(r.cause == "summary" for r in c.rows)} == {1}


# -- a prompt stays within the model's window: what does not fit is clipped

WINDOW = 2_000
SAID = "does not fit the model's window"


AGENTS = [ToolLoopAgent(), LeanAgent(), ReActAgent(), ReActAgent(form="calls")]


def sizes(model: ScriptedModel) -> list[int]:
    return [sum(part.tokens for part in model.measure(prompt)) for prompt in model.prompts]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
@pytest.mark.parametrize("text", ["print('x' * 50_000)", "print('é\\n' * 20_000)", "raise ValueError('x' * 50_000)"])
def test_a_long_result_is_clipped_to_what_is_left(agent: Agent, text: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    model = ScriptedModel([cell(agent, text), final(agent, "ok")], window=WINDOW)
    outcome = replace(agent, model=model).run("q", context="text", trace=path)
    (seen,) = outcome.turns[0].observations
    assert (SAID in seen.text, "characters left out" in seen.text, seen.truncated) == (True, True, True)
    assert len(seen.full) > 20_000
    assert WINDOW // 2 < sizes(model)[1] <= WINDOW
    assert (outcome.answer, replay(path).same) == ("ok", True)


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_results_that_fit_are_left_alone(agent: Agent) -> None:
    cells = [cell(agent, f"print('x' * 500, {n})") for n in range(3)]
    prompts: list[list[str]] = []
    for window in (None, 100_000):
        model = ScriptedModel([*cells, final(agent, "ok")], window=window)
        assert replace(agent, model=model).run("q", context="text").answer == "ok"
        prompts.append([p.digest for p in model.prompts])
    assert prompts[0] == prompts[1]


def test_several_results_of_a_reply_are_clipped_the_longest_first() -> None:
    cells = code(*(f"print('x' * {n})" for n in (300, 30_000, 40_000)))
    model = ScriptedModel([cells, code("final_answer = 1")], window=WINDOW)
    outcome = ToolLoopAgent(model=model).run("q")
    clipped = [SAID in o.text for o in outcome.turns[0].observations]
    assert (clipped, outcome.answer) == ([False, True, True], 1)


@pytest.mark.parametrize("history", ["window", "drop_outputs", 40])
def test_a_history_setting_shortens_before_anything_is_clipped(history: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    cells = [code(f"print('x' * 1500, {n})") for n in range(8)]
    model = ScriptedModel([*cells, code("final_answer = 'ok'")], window=WINDOW)
    outcome = ToolLoopAgent(model=model, history=history).run("q", trace=path)
    assert not any(SAID in o.text for t in outcome.turns for o in t.observations)
    assert (outcome.answer, max(sizes(model)) <= WINDOW) == ("ok", True)
    assert (read(path).of("compaction") != [], replay(path).same) == (True, True)


def test_a_question_that_does_not_fit_is_said_before_the_first_reply() -> None:
    with pytest.raises(RequestRejected, match="window"):
        LeanAgent(model=ScriptedModel(["x"], window=100)).run("q" * 5_000)
