"""The agents that are tried at every provider, and what the model behind it says to each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from serving import Said  # pyright: ignore

from rlm_loop import DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.agents import Agent
from rlm_loop.tools import Tool, tool

QUESTION, ANSWER = "What is 2 plus 3?", 5


@tool
def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


@tool
def today() -> str:
    """The date; it has no parameters."""
    return "2026-11-22"


TOOLS: list[Tool] = [add, today]
BOTH = (("add", {"a": 2, "b": 3}), ("today", {}))


@dataclass(frozen=True)
class Player:
    agent: Callable[[Any], Agent]
    says: Sequence[Said]


PLAYERS = {
    "tool loop": Player(
        lambda model: ToolLoopAgent(max_tokens=500, model=model, tools=TOOLS),
        [Said("I look.\n```python\nx = add(2, 3)\nprint(x)\n```\n"), Said("```python\nfinal_answer = x\n```")],
    ),
    "lean": Player(
        lambda model: LeanAgent(max_tokens=500, model=model, tools=TOOLS),
        [Said(None, BOTH), Said("", (("add", {"a": "x"}),)), Said(None, (("final_answer", {"answer": 5}),))],
    ),
    "react": Player(
        lambda model: ReActAgent(max_tokens=500, model=model, tools=TOOLS),
        [
            Said('Thought: I add.\nAction: add\nAction Input: {"a": 2, "b": 3}\nObservation: 99\nFinal Answer: 99'),
            Said("Thought: done\nFinal Answer: 5"),
        ],
    ),
    "react calls": Player(
        lambda model: ReActAgent(max_tokens=500, model=model, tools=TOOLS, form="calls"),
        [Said("I add.", BOTH[:1]), Said("", (("final_answer", {"answer": 5}),))],
    ),
    "nothing at first": Player(
        lambda model: LeanAgent(max_tokens=500, model=model, tools=TOOLS),
        [Said(""), Said(None, (("final_answer", {"answer": 5}),))],
    ),
    "a refusal at first": Player(
        lambda model: LeanAgent(max_tokens=500, model=model, tools=TOOLS),
        [Said(None, refusal="I'd rather not."), Said(None, (("final_answer", {"answer": 5}),))],
    ),
    "direct": Player(lambda model: DirectAgent(max_tokens=500, model=model), [Said("5")]),
}
