"""Texts that other frameworks add to a prompt, byte for byte, and the injectors that say them.

Versions: mellea 0.8.0 (`templates/prompts/default/React*.jinja2`), rlms 0.1.3 (`rlm/utils/prompts.py`), smolagents
1.26.0 (`memory.py`).  The commit before the one that added this file quotes the source lines, with their hashes.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from rlm_loop.actions import CallTool, RunCode
from rlm_loop.dialects import Injector, Problem, ThoughtPrompt
from rlm_loop.outcome import Turn

INITIATOR = (
    "Use the provided tools to complete the assigned goal as best you can. Use the following process:\n"
    "- Goal: the input question you must answer / the task you must complete\n"
    "- Thought: think about what to do next\n"
    "- Action: choose an action and call that tool\n"
    "- Observe: the result of the action\n"
    "... (this Thought/Action/Action Input/Observation can repeat N times)\n"
    "- Thought: I now know the final answer\n"
    "\n"
    "When the final answer is found, use the `final_answer` tool with the final value. A tool call is "
    "always required as the final step. If you catch yourself repeating the same thing, call the "
    "`final_answer` tool.\n"
    "\n"
    "Goal: "
)
THOUGHT = ThoughtPrompt(
    "Think about what to do next and take the next step in the process. If a tool call is necessary to "
    "collect additional information call it. If you are done and have a final answer, call the "
    "`final_answer` tool.",
    "mellea_thought",
)
SAFEGUARD = (
    "You have not interacted with the REPL environment or seen your prompt / context yet. Look at the "
    "context first; do not provide a final answer yet.\n"
    "\n"
)


@dataclass(frozen=True)
class MelleaInitiator(Injector):
    """mellea's goal template.  It ends with `Goal: `, and the question comes right after it."""

    text: str = INITIATOR
    name: str = "mellea_initiator"
    leads: bool = True

    def opening(self, problem: Problem) -> str:
        return self.text


@dataclass(frozen=True)
class RlmsTurnCounter(Injector):
    """rlms' `Turn 3/30:` before every reply, the first one after a warning not to answer yet."""

    limit: int = 30
    name: str = "rlms_turn_counter"

    def opening(self, problem: Problem) -> str:
        return f"{SAFEGUARD}Turn 1/{self.limit}:"

    def after(self, turn: Turn) -> str:
        return f"Turn {turn.index + 1}/{self.limit}:"


@dataclass(frozen=True)
class SmolagentsEcho(Injector):
    """The calls of a turn once more, as smolagents keeps them beside the reply: its CodeAgent so sends code twice."""

    name: str = "smolagents_code_echo"

    def after(self, turn: Turn) -> str:
        code = [a.code.strip() for a in turn.actions if isinstance(a, RunCode)]
        calls = [_call("python_interpreter", "\n\n".join(code), f"call_{turn.index}")] if code else []
        named = (a for a in turn.actions if isinstance(a, CallTool))
        calls += [_call(a.name, a.arguments, a.call_id or f"call_{number}") for number, a in enumerate(named, 1)]
        return f"Calling tools:\n{calls}" if calls else ""


def _call(name: str, arguments: str, call_id: str) -> dict[str, Any]:
    """Return the call as smolagents shows it: arguments that look like a JSON object or list are one."""
    value: Any = arguments
    if arguments[:1] + arguments[-1:] in ("{}", "[]"):
        try:
            value = json.loads(arguments)
        except ValueError:
            value = arguments
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": value}}


#: Both of mellea's texts: the template once, the thought before every reply.
MELLEA: tuple[Injector, ...] = (MelleaInitiator(), THOUGHT)

_SENTENCE = re.compile(r"\S.*?(?:[.!?:](?=\s)|\n|\Z)", re.DOTALL)


def resized(text: str, characters: int) -> str:
    """Return the text cut at so many characters, or grown to them by saying its sentences again."""
    sentences = [s.strip() for s in _SENTENCE.findall(text)]
    again = cycle(sentences)
    while sentences and len(text) < characters:
        text += ("" if text[-1].isspace() else " ") + next(again)
    return text[:characters]
