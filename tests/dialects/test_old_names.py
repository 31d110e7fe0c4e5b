"""A dialect that was written for 0.1 still works, and is told its new names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from rlm_loop.actions import Action
from rlm_loop.agents import Agent
from rlm_loop.dialects.base import NO_TOOLS, Problem
from rlm_loop.dialects.code_blocks import CodeBlocks
from rlm_loop.messages import Message, Prompt, Reply
from rlm_loop.models import ScriptedModel
from rlm_loop.outcome import Turn
from rlm_loop.tools import Tool

INNER = CodeBlocks()


@dataclass(frozen=True)
class Old:
    name: str = "old"
    hands: str = "code"

    def brief(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        return INNER.format_task(problem, tools)

    def parse(self, reply: Reply, tools: Mapping[str, Tool] = NO_TOOLS) -> Sequence[Action]:
        return INNER.parse_reply(reply, tools)

    def replay(self, turn: Turn) -> Sequence[Message]:
        return INNER.format_turn(turn)


class OldAgent(Agent):
    def _speaks(self) -> Any:
        return Old()


def test_the_names_of_0_1_work_with_a_warning() -> None:
    agent = OldAgent(model=ScriptedModel(["```python\nfinal_answer = 3\n```"]), repl="plain")
    with pytest.warns(DeprecationWarning, match=r"format_task \(it was brief\).*action_mode \(it was hands\)"):
        assert agent.run("Three?").answer == 3
    assert agent.settings()["dialect"]["hands"] == "code"
