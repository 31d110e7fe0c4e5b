"""`temperature=` of an agent: which requests have it, whatever the model is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from upstream import Upstream, completion

from rlm_loop import DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.agents import Agent, SubCalls
from rlm_loop.models import OpenAICompatibleModel, ScriptedModel
from rlm_loop.replay import replay
from rlm_loop.traces import read


@pytest.mark.parametrize("temperature", [None, 0, 0.7])
@pytest.mark.parametrize("made", ["by name", "with its own"])
def test_it_is_sent(made: str, temperature: float | None, chat_server: Upstream) -> None:
    chat_server.say(completion("4"))
    own = OpenAICompatibleModel("m", chat_server.url, temperature=0.3)
    model = f"openai-compatible:m@{chat_server.url}" if made == "by name" else own
    assert DirectAgent(model=model, temperature=temperature).run("2 + 2?").answer == "4"
    left = 0.0 if made == "by name" else 0.3
    assert [r["temperature"] for r in chat_server.requests] == [left if temperature is None else temperature]
    assert own.temperature == 0.3  # a model that is shared keeps its own


@pytest.mark.parametrize("agent", [ToolLoopAgent, LeanAgent, ReActAgent, DirectAgent])
def test_every_strategy_sends_it_and_replays(agent: type[Agent], tmp_path: Path) -> None:
    model, trace = ScriptedModel(["```python\n1\n```", "4", "Action: finish\nAction Input: 4"]), tmp_path / "t.jsonl"
    agent(model=model, temperature=0.7).run("2 + 2?", trace=trace)
    assert [dict(p.sampling) for p in model.prompts] == [{"temperature": 0.7}] * len(model.prompts)
    assert read(trace).start["settings"]["temperature"] == 0.7
    assert replay(trace).same


ASKS = "```python\nfinal_answer = llm_query('2 + 2?')\n```"


@pytest.mark.parametrize(
    ("settings", "root", "sub"),
    [
        ({}, 0.7, 0.7),
        ({"subcalls": SubCalls(model=ScriptedModel(["4"]))}, 0.7, None),
        ({"max_depth": 2}, 0.7, 0.7),
    ],
    ids=["the same model", "a model of its own", "a sub-agent"],
)
def test_sub_calls_have_it_where_the_model_is_the_same(settings: Any, root: float, sub: float | None) -> None:
    model = ScriptedModel([ASKS, "4"])
    assert ToolLoopAgent(model=model, temperature=0.7, **settings).run("?").answer == "4"
    prompts = [*model.prompts, *getattr(settings.get("subcalls", SubCalls()).model, "prompts", [])]
    assert [p.sampling.get("temperature") for p in prompts] == [root, sub]
