"""Agents that may use some tools only, and lists of callers that stay theirs: semantics 35."""

from __future__ import annotations

from typing import Any

import pytest

from rlm_loop import Budget, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.agents import Rules
from rlm_loop.models import ScriptedModel
from rlm_loop.tools import tool
from rlm_loop.workspace import Workspace

ran: list[str] = []


@tool
def look() -> str:
    """Look."""
    return "seen"


@tool
def burn() -> str:
    """Burn it."""
    ran.append("burn")
    return "ashes"


SCRIPTS: dict[str, tuple[Any, list[str]]] = {
    "code": (ToolLoopAgent, ["```python\nburn()\n```", "```python\nfinal_answer = look()\n```"]),
    "calls": (
        LeanAgent,
        ['{"name": "burn", "arguments": {}}', '{"name": "final_answer", "arguments": {"answer": "seen"}}'],
    ),
    "react": (
        ReActAgent,
        ["Thought: x\nAction: burn\nAction Input: {}", 'Thought: x\nAction: finish\nAction Input: {"answer": "seen"}'],
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_is_not_on_the_list_is_not_told_and_not_run(name: str) -> None:
    agent, replies = SCRIPTS[name]
    ran.clear()
    allow, tools, hooks, injectors = ["look"], [look, burn], [object()], list[Any]()
    model = ScriptedModel(list(replies), name="local:scripted")
    made = agent(
        model=model, tools=tools, hooks=hooks, injectors=injectors, budget=Budget(steps=4), rules=Rules(allow=allow)
    )
    with Workspace({"a.py": "x = 1\n"}) as space:
        outcome = made.run("What is there?", workspace=space)
    assert (outcome.stop, outcome.answer, ran) == ("answered", "seen", [])
    first = "\n".join(m.text for m in model.prompts[0].messages)
    assert "look()" in first
    assert "burn" not in first
    assert "apply_edit" not in first
    told = outcome.turns[0].observations[0].text
    assert "tool 'burn' is not allowed here; tools: look" in told
    assert (allow, tools, len(hooks), injectors) == (["look"], [look, burn], 1, [])


def test_an_agent_without_a_list_is_the_one_it_was() -> None:
    assert LeanAgent().settings()["rules"]["allow"] is None
    assert LeanAgent(rules=Rules(allow=("look",))).settings()["rules"]["allow"] == ["look"]
    with pytest.raises(ValueError, match="list of tool names"):
        LeanAgent(rules=Rules(allow="look"))  # type: ignore[arg-type]
