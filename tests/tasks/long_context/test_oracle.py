"""The oracle answers exactly for what it is shown, and only what it is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

import rlm_loop.agents.recursion
from rlm_loop import Budget, DirectAgent, ToolLoopAgent
from rlm_loop.messages import Prompt
from rlm_loop.models.base import Measuring, Model, ModelError, RequestRejected
from rlm_loop.tasks import Attempt
from rlm_loop.tasks.base import Task
from rlm_loop.tasks.long_context import FAMILIES, long_context
from rlm_loop.tasks.long_context.oracle import PART, Oracle
from rlm_loop.tasks.long_context.readers import NOTHING, reader_of

RECURSIVE = hasattr(rlm_loop.agents.recursion, "query_tools")


@pytest.mark.parametrize("family", FAMILIES)
def test_pieces_add_up_to_the_truth(family: str, folder: str) -> None:
    for task in long_context(family, "30k", seed=2, text=folder):
        reader = reader_of(task.question)
        assert reader is not None
        lines = task.material().splitlines(keepends=True)
        pieces = ["".join(lines[i : i + 50]) for i in range(0, len(lines), 50)]
        items = reader.joined([x for piece in pieces for x in reader.joined(reader.finds(piece))])
        assert task.score(Attempt(reader.answer(items))).resolved, task.question
        if reader.by_code:
            names: dict[str, Any] = {"context": task.material()}
            exec(reader.program(), names)
            assert task.score(Attempt(names["final_answer"])).resolved, task.question


@pytest.mark.parametrize("family", ["needle", "needles"])
def test_what_is_not_there_is_not_found(family: str, folder: str) -> None:
    reader = reader_of(long_context(family, "8k", text=folder).tasks[2].question)
    assert reader is not None
    assert reader.answer(reader.finds("nothing")) == NOTHING


def attempt(agent: Any, task: Task) -> tuple[bool, Any]:
    outcome = agent.attempt(task)
    return task.score(Attempt(outcome.answer, answered=outcome.answered)).resolved, outcome


@pytest.mark.parametrize("family", FAMILIES)
def test_asked_directly_it_knows_what_its_window_shows(family: str, folder: str) -> None:
    small, large = (long_context(family, size, text=folder).tasks[0] for size in ("8k", "200k"))
    agent = DirectAgent(model=Oracle(), window=12_000)
    assert attempt(agent, small)[0]
    resolved, outcome = attempt(agent, large)
    assert outcome.usage.input_tokens < 4_096
    seen = sum(start < 6_000 or end > 194_000 for start, end in large.ranges())
    assert resolved == (seen == len(large.ranges()))


@pytest.mark.parametrize(
    ("family", "depth", "resolved", "calls"),
    [("chain", 0, True, 1), ("classify", 0, False, 2), ("classify", 1, True, 7), ("pairs", 1, True, 7)],
)
def test_in_the_loop(family: str, depth: int, resolved: bool, calls: int, folder: str) -> None:
    task = long_context(family, "40k", text=folder).tasks[0]
    found, outcome = attempt(ToolLoopAgent(model=Oracle(), max_depth=depth, budget=Budget(steps=3)), task)
    assert outcome.answered
    assert (found, outcome.usage.calls) == (resolved, calls)


@pytest.mark.skipif(not RECURSIVE, reason="llm_query takes no context in this version")
@pytest.mark.parametrize("family", ["records", "classify", "chain"])
def test_with_sub_agents(family: str, folder: str) -> None:
    task = long_context(family, "100k", text=folder).tasks[0]
    found, outcome = attempt(ToolLoopAgent(model=Oracle(levels=2), max_depth=2, budget=Budget(steps=3)), task)
    assert found
    assert outcome.usage.calls > 13 + 3  # a completion for every 8,000 characters, the agents above them, the root


def test_a_part_is_answered_as_a_list() -> None:
    question = long_context("records", "8k").tasks[0].question
    text = "Record 1: city=Oslo status=paid amount=5\nRecord 2: city=Oslo status=open amount=5\n"
    reply = Oracle().complete(Prompt.ask(f"{text}\n\n{PART}{question}"))
    assert json.loads(reply.text) == [1]
    assert reply.usage is not None
    assert reply.usage.input_tokens == sum(
        p.tokens for p in Oracle().measure(Prompt.ask(f"{text}\n\n{PART}{question}"))
    )


def test_it_is_a_model_that_says_what_it_is() -> None:
    oracle = Oracle()
    assert isinstance(oracle, Model)
    assert isinstance(oracle, Measuring)
    assert "no language model" in oracle.name
    with pytest.raises(RequestRejected, match="a window of 4096 tokens"):
        oracle.complete(Prompt.ask("x" * 40_000))
    with pytest.raises(ModelError, match="questions of long_context only"):
        oracle.complete(Prompt.ask("What is the capital of France?"))
    question = long_context("classify", "8k", tasks=4).tasks[2].question
    cut = oracle.complete(Prompt.ask(question), max_tokens=1)
    assert (cut.finish_reason, cut.text) == ("length", NOTHING[:4])
