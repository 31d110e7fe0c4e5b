"""A prompt stays within the window: what does not fit is clipped, or left out where a history setting says so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.agents import Agent
from rlm_loop.models import Reply, RequestRejected, ScriptedModel, ToolCall
from rlm_loop.replay import replay
from rlm_loop.traces import read

WINDOW = 2_000
SAID = "does not fit the model's window"


def code(text: str, agent: Agent) -> Any:
    if isinstance(agent, ToolLoopAgent):
        return f"```python\n{text}\n```"
    if isinstance(agent, ReActAgent) and agent.form == "text":
        return f"Thought: look\nAction: python\nAction Input: {json.dumps({'code': text})}"
    return Reply(tool_calls=(ToolCall("c", "python", json.dumps({"code": text})),))


def final(value: str, agent: Agent) -> Any:
    if isinstance(agent, ToolLoopAgent):
        return f"```python\nfinal_answer = {value!r}\n```"
    if isinstance(agent, ReActAgent) and agent.form == "text":
        return f"Thought: done\nAction: finish\nAction Input: {json.dumps({'answer': value})}"
    return Reply(tool_calls=(ToolCall("f", "final_answer", json.dumps({"answer": value})),))


AGENTS = [ToolLoopAgent(), LeanAgent(), ReActAgent(), ReActAgent(form="calls")]


def sizes(model: ScriptedModel) -> list[int]:
    return [sum(part.tokens for part in model.measure(prompt)) for prompt in model.prompts]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
@pytest.mark.parametrize("cell", ["print('x' * 50_000)", "print('é\\n' * 20_000)", "raise ValueError('x' * 50_000)"])
def test_a_long_result_is_clipped_to_what_is_left(agent: Agent, cell: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    model = ScriptedModel([code(cell, agent), final("ok", agent)], window=WINDOW)
    outcome = replace(agent, model=model).run("q", context="text", trace=path)
    assert (outcome.stop, outcome.answer) == ("answered", "ok")
    seen = outcome.turns[0].observations[0]
    assert SAID in seen.text
    assert "characters left out" in seen.text
    assert seen.truncated
    assert len(seen.full) > 20_000
    assert WINDOW // 2 < sizes(model)[1] <= WINDOW
    assert replay(path).same


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_results_that_fit_are_left_alone(agent: Agent) -> None:
    cells = [code(f"print('x' * 500, {n})", agent) for n in range(3)]
    prompts: list[list[str]] = []
    for window in (None, 100_000):
        model = ScriptedModel([*cells, final("ok", agent)], window=window)
        assert replace(agent, model=model).run("q", context="text").answer == "ok"
        prompts.append([p.digest() for p in model.prompts])
    assert prompts[0] == prompts[1]


def test_several_results_of_a_reply_are_clipped_the_longest_first() -> None:
    cells = "\n".join(f"```python\nprint('x' * {n})\n```" for n in (300, 30_000, 40_000))
    model = ScriptedModel([cells, "```python\nfinal_answer = 1\n```"], window=WINDOW)
    outcome = ToolLoopAgent(model=model).run("q")
    texts = [o.text for o in outcome.turns[0].observations]
    assert [SAID in text for text in texts] == [False, True, True]
    assert outcome.answer == 1


@pytest.mark.parametrize("settings", [{"history": "window"}, {"history": "drop_outputs"}, {"history": 40}], ids=str)
def test_a_history_setting_shortens_before_anything_is_clipped(settings: dict[str, Any], tmp_path: Path) -> None:
    path, agent = tmp_path / "run.jsonl", ToolLoopAgent()
    cells = [code(f"print('x' * 1500, {n})", agent) for n in range(8)]
    model = ScriptedModel([*cells, final("ok", agent)], window=WINDOW)
    outcome = replace(agent, model=model, **settings).run("q", trace=path)
    assert outcome.answer == "ok"
    assert not any(SAID in o.text for t in outcome.turns for o in t.observations)
    assert max(sizes(model)) <= WINDOW
    assert [e for e in read(path).events if e["event"] == "compaction"]
    assert replay(path).same


def test_a_question_that_does_not_fit_is_said_before_the_first_reply() -> None:
    with pytest.raises(RequestRejected, match="window"):
        LeanAgent(model=ScriptedModel(["x"], window=100)).run("q" * 5_000)
