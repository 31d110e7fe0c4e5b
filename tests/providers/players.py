"""The agents that are tried at every provider, and what the model behind it says to each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_loop import DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.agents import Agent
from rlm_loop.models import LiteLLMModel, OllamaModel, OpenAICompatibleModel, RetryPolicy
from rlm_loop.tools import Tool, tool
from tests.providers.serving import Provider, Said

QUESTION, ANSWER = "What is 2 plus 3?", 5
ONCE = RetryPolicy(attempts=1)


def lite(name: str, path: str = "") -> Callable[[Provider], LiteLLMModel]:
    asked: dict[str, Any] = {"api_key": "k", "temperature": 0.0, "seed": 0, "retry": ONCE}
    return lambda server: LiteLLMModel(name, api_base=server.address + path, **asked)


def own(server: Provider, name: str = "own") -> OpenAICompatibleModel:
    return OpenAICompatibleModel("m", f"{server.address}/v1", api_key="k", retry=ONCE, name=name)


def ollama(server: Provider, **more: Any) -> OllamaModel:
    return OllamaModel("m", server.address, retry=ONCE, **more)


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


def playing(kind: Callable[..., Agent], **settings: Any) -> Callable[[Any], Agent]:
    return lambda model: kind(model=model, max_tokens=500, **settings)


LEAN = playing(LeanAgent, tools=TOOLS)
LAST = Said(None, (("final_answer", {"answer": 5}),))
PLAYERS = {
    "tool loop": Player(
        playing(ToolLoopAgent, tools=TOOLS),
        [Said("I look.\n```python\nx = add(2, 3)\nprint(x)\n```\n"), Said("```python\nfinal_answer = x\n```")],
    ),
    "lean": Player(LEAN, [Said(None, BOTH), Said("", (("add", {"a": "x"}),)), LAST]),
    "react": Player(
        playing(ReActAgent, tools=TOOLS),
        [
            Said('Thought: I add.\nAction: add\nAction Input: {"a": 2, "b": 3}\nObservation: 99\nFinal Answer: 99'),
            Said("Thought: done\nFinal Answer: 5"),
        ],
    ),
    "react calls": Player(
        playing(ReActAgent, tools=TOOLS, form="calls"),
        [Said("I add.", BOTH[:1]), Said("", (("final_answer", {"answer": 5}),))],
    ),
    "nothing at first": Player(LEAN, [Said(""), LAST]),
    "a refusal at first": Player(LEAN, [Said(None, refusal="I'd rather not."), LAST]),
    "direct": Player(playing(DirectAgent), [Said("5")]),
}
