"""ReAct as text: one template with Thought, Action and Observation lines (Yao et al. 2023, arXiv 2210.03629).

The other form, an initiator and a thought prompt every turn over tool calls, is `FunctionCalls` with
injectors: see `agents.ReActAgent`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlm_loop.actions import Action, Answer, CallTool, Malformed, Note
from rlm_loop.dialects.base import NO_TOOLS, ActionMode, DialectDefaults, Problem, text_to_read
from rlm_loop.dialects.react_text import read_step
from rlm_loop.dialects.reader import calls_in_place, read_arguments
from rlm_loop.dialects.shown import assistant_message, result_spans, system_message, task_message
from rlm_loop.dialects.wording import REACT_TEMPLATE, tool_lines
from rlm_loop.messages import Message, Prompt, Reply, Span
from rlm_loop.outcome import Turn
from rlm_loop.tools.function import Tool

LABEL = "Observation: "


@dataclass(frozen=True)
class ReActText(DialectDefaults):
    """Speak in Thought / Action / Observation lines; only the model's own words are kept in the history.

    With `may_block` a line `BLOCKED: reason` gives up.
    """

    rule: str = REACT_TEMPLATE
    heading: str = "Tools:"
    name: str = "react"
    action_mode: ActionMode = "calls"
    may_block: bool = False

    def format_task(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        offered = {n: t for n, t in tools.items() if n != "final_answer"}
        messages = (*system_message(self.rule, tool_lines(self.heading, offered)), task_message(problem))
        # With its line break, since a bare "Observation:" as a stop string leaves some replies empty.
        return Prompt(messages, stop=("\nObservation:",))

    def parse_reply(self, reply: Reply, tools: Mapping[str, Tool] = NO_TOOLS) -> Sequence[Action]:
        text = text_to_read(reply, may_block=self.may_block)
        if isinstance(text, Malformed):
            return [text]
        step = read_step(text, tools.keys())
        if step.finish is not None:
            return [_finish(step.finish, step.notes)]
        if Note.EMPTY_ANSWER in step.notes:
            return [Malformed('finish needs the answer: Action Input: {"answer": ...}', notes=step.notes)]
        if step.action is None:
            none = Malformed("No action found. Write an Action line and an Action Input line.", notes=step.notes)
            return calls_in_place(step.own, tools.keys()) or [none]
        arguments, repairs = read_arguments(tools.get(step.action), step.input)
        return [CallTool(step.action, arguments, lenient=True, notes=(*step.notes, *repairs))]

    def format_turn(self, turn: Turn) -> Sequence[Message]:
        said = assistant_message(turn, read_step(turn.reply.text, ()).own)
        label = Span(LABEL, "scaffold:observation_label")
        return [said, Message("user", (label, *result_spans(turn)), turn=turn.index)]


def _finish(text: str, notes: tuple[str, ...]) -> Answer:
    """The answer out of `{"answer": ...}` where it is written so, else the text."""
    arguments, repairs = read_arguments(None, text) if text.startswith("{") else (text, ())
    try:
        value = json.loads(arguments, strict=False)
    except (ValueError, RecursionError):
        return Answer(text.strip(), notes=(*notes, *repairs))
    value = next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value
    return Answer(value, notes=(*notes, *repairs))
