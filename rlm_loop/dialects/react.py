"""ReAct as text: one template with Thought, Action and Observation lines (Yao et al. 2023, arXiv 2210.03629).

The other form, an initiator and a thought prompt every turn over tool calls, is `FunctionCalls` with
injectors: see `agents.ReActAgent`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rlm_loop.actions import Action, Answer, CallTool, Malformed, Note
from rlm_loop.dialects.base import NO_TOOLS, ActionMode, DialectDefaults, Problem, whole
from rlm_loop.dialects.lenient_json import decode_repaired, wrapped, written
from rlm_loop.dialects.react_text import read_step
from rlm_loop.dialects.shown import assistant_message, result_span, system_message, task_message
from rlm_loop.dialects.wording import REACT_TEMPLATE, tool_lines
from rlm_loop.messages import Message, Prompt, Reply, Span
from rlm_loop.outcome import Turn
from rlm_loop.tools.function import Tool

LABEL = "Observation: "


@dataclass(frozen=True)
class ReActText(DialectDefaults):
    """Speak in Thought / Action / Observation lines; only the model's own words are kept in the history.

    With `finish_with_result` a finish without an answer gives the last result as the answer; without it the model is
    told that the answer is missing.
    """

    rule: str = REACT_TEMPLATE
    heading: str = "Tools:"
    name: str = "react"
    action_mode: ActionMode = "calls"
    finish_with_result: bool = False

    def format_task(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        offered = {n: t for n, t in tools.items() if n != "final_answer"}
        messages = (*system_message(self.rule, tool_lines(self.heading, offered)), task_message(problem))
        # With its line break, since a bare "Observation:" as a stop string leaves some replies empty.
        return Prompt(messages, stop=("\nObservation:",))

    def parse_reply(self, reply: Reply, tools: Mapping[str, Tool] = NO_TOOLS) -> Sequence[Action]:
        refused = whole(reply)
        if refused is not None:
            return [refused]
        step = read_step(reply.text, tools.keys())
        if step.finish is not None:
            return [_finish(step.finish, step.notes)]
        if Note.EMPTY_ANSWER in step.notes:
            notes = (*step.notes, Note.RESULT_ANSWERS) if self.finish_with_result else step.notes
            return [Malformed('finish needs the answer: Action Input: {"answer": ...}', notes=notes)]
        if step.action is None:
            return [Malformed("No action found. Write an Action line and an Action Input line.", notes=step.notes)]
        return [CallTool(step.action, _arguments(tools.get(step.action), step.input), lenient=True, notes=step.notes)]

    def format_turn(self, turn: Turn) -> Sequence[Message]:
        said = assistant_message(turn, read_step(turn.reply.text, ()).own)
        label = Span(LABEL, "scaffold:observation_label")
        return [said, Message("user", (label, result_span(turn.observations[0])), turn=turn.index)]


def _arguments(tool: Tool | None, text: str) -> str:
    """The arguments object of an Action Input, read as leniently as a call in plain text is.

    Bare text for a tool with one string parameter is that parameter, as ReAct's own examples have it.
    """
    start = text.find("{")
    if text.lstrip().startswith("{"):
        read = decode_repaired(text, start).value
        return (written(cast("dict[Any, Any]", read)) if isinstance(read, dict) else None) or text
    return (wrapped(tool, text) if text else None) or text


def _finish(text: str, notes: tuple[str, ...]) -> Answer:
    """The answer out of `{"answer": ...}` where it is written so, else the text."""
    try:
        value = json.loads(text, strict=False)
    except ValueError:
        return Answer(text.strip(), notes=notes)
    if isinstance(value, dict) and len(value) == 1:
        return Answer(next(iter(value.values())), notes=notes)
    return Answer(value, notes=notes)
