"""What a trainer needs of a local model: the ids it read and wrote, and how likely those it wrote were."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_loop import ToolLoopAgent
from rlm_loop.formats.traces import conversation_of
from rlm_loop.formats.traces.verifiers_out import record_of_run
from rlm_loop.messages import Prompt
from rlm_loop.models import LocalModel
from rlm_loop.traces.reader import read


@pytest.fixture
def keeping(small: LocalModel) -> LocalModel:
    return LocalModel("smollm2-135m", context_size=2048, threads=1, max_tokens=24, token_ids=True)


def test_ids_and_probabilities_of_a_reply(small: LocalModel, keeping: LocalModel) -> None:
    prompt = Prompt.ask("Say hello.")
    reply = keeping.complete(prompt)
    assert reply.usage is not None
    assert reply.text == small.complete(prompt, max_tokens=24).text
    kept = reply.extra["tokens"]
    assert len(kept["ids"]) == len(kept["logprobs"]) == reply.usage.output_tokens
    assert all(value <= 0 for value in kept["logprobs"])
    assert len(keeping.prompt_ids(prompt)) == reply.usage.input_tokens
    assert "tokens" not in small.complete(prompt, max_tokens=2).extra


def test_a_run_of_two_turns_is_one_sample(keeping: LocalModel, tmp_path: Path) -> None:
    agent = ToolLoopAgent(model=keeping, max_steps=2, require_code=True)
    agent.run("What is 17 * 23? Use Python.", trace=tmp_path / "run.jsonl")
    conversation = conversation_of(read(tmp_path / "run.jsonl"))
    record = record_of_run(conversation, lambda _, prompt: keeping.prompt_ids(prompt))
    ids = [id for node in record["nodes"] for id in node.get("token_ids", [])]
    last = conversation.steps[-1]
    assert last.reply is not None
    assert len(conversation.steps) == 2
    assert ids == [*keeping.prompt_ids(Prompt(last.messages)), *last.reply.extra["tokens"]["ids"]]
    assert sum(sum(node.get("mask", [])) for node in record["nodes"]) == conversation.usage.output_tokens
