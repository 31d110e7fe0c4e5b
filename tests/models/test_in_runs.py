"""A run and its model: the agent's `temperature` is in the requests, and errors are asked again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from upstream import Upstream, completion

from rlm_loop import DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.agents import Agent, SubCalls
from rlm_loop.models import ModelError, OpenAICompatibleModel, RetryPolicy, ScriptedModel
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
    [({}, 0.7, 0.7), ({"subcalls": SubCalls(model=ScriptedModel(["4"]))}, 0.7, None), ({"max_depth": 2}, 0.7, 0.7)],
    ids=["the same model", "a model of its own", "a sub-agent"],
)
def test_sub_calls_have_it_where_the_model_is_the_same(settings: Any, root: float, sub: float | None) -> None:
    model = ScriptedModel([ASKS, "4"])
    assert ToolLoopAgent(model=model, temperature=0.7, **settings).run("?").answer == "4"
    prompts = [*model.prompts, *getattr(settings.get("subcalls", SubCalls()).model, "prompts", [])]
    assert [p.sampling.get("temperature") for p in prompts] == [root, sub]


def busy(after: float | None = None) -> ModelError:
    error = ModelError("busy", retryable=True)
    error.retry_after = after
    return error


def own(*says: ModelError | str, retry: RetryPolicy | None) -> ScriptedModel:
    """A model that is asked as a user's own is: in another thread, and again where the run does it."""
    model = ScriptedModel(says)
    model.interruptible, model.loop_retry = False, retry
    return model


def test_a_run_asks_a_users_own_model_again_after_waits_that_double() -> None:
    seen: list[float] = []
    clock = [0.0]

    def sleep(seconds: float) -> None:
        seen.append(seconds)
        clock[0] += seconds

    retry = RetryPolicy(9, 1.0, longest=3.0, sleep=sleep, clock=lambda: clock[0], chance=lambda: 0.0)
    model = own(*[busy() for _ in range(4)], busy(after=5.0), "42", retry=retry)
    outcome = LeanAgent(model=model).run("What is 6 times 7?")
    assert (outcome.answer, len(model.prompts), seen) == ("42", 6, [1.0, 2.0, 3.0, 3.0, 5.0])
    (call,) = outcome.ledger.calls  # one call, which took its waits
    assert (call.waited, call.seconds) == (14.0, 14.0)
    assert outcome.working_seconds < outcome.seconds


@pytest.mark.parametrize(
    ("error", "attempts", "asked"),
    [
        (ModelError("final"), 3, 1),
        (busy(), 3, 3),
        (busy(after=1000.0), 3, 1),  # longer than anyone waits: say so at once
        (busy(), None, 1),
    ],
)
def test_nor_is_it_asked_again_in_vain(error: ModelError, attempts: int | None, asked: int) -> None:
    model = own(*[error] * 9, retry=None if attempts is None else RetryPolicy(attempts, sleep=lambda _: None))
    with pytest.raises(ModelError):
        LeanAgent(model=model).run("What is 6 times 7?")
    assert len(model.prompts) == asked
