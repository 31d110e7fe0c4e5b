"""No loop at all: the question with its material, and the first reply is the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlm_loop.actions import Action, Answer, Malformed
from rlm_loop.dialects.base import NO_TOOLS, ActionMode, DialectDefaults, Problem, text_to_read
from rlm_loop.dialects.shown import assistant_message, system_message, user_results
from rlm_loop.messages import Message, Prompt, Reply, Span
from rlm_loop.outcome import Turn
from rlm_loop.tools.function import Tool


@dataclass(frozen=True)
class Direct(DialectDefaults):
    """Ask once.  `rule` is an optional system text; with `may_block` a line `BLOCKED: reason` gives up."""

    rule: str = ""
    name: str = "direct"
    action_mode: ActionMode = "none"
    may_block: bool = False

    def format_task(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        text = "\n\n".join(filter(None, [problem.inline, problem.question]))
        return Prompt((*system_message(self.rule), Message("user", (Span(text, "task"),))))

    def parse_reply(self, reply: Reply, tools: Mapping[str, Tool] = NO_TOOLS) -> Sequence[Action]:
        text = text_to_read(reply, may_block=self.may_block)
        return [text if isinstance(text, Malformed) else Answer(text.strip())]

    def format_turn(self, turn: Turn) -> Sequence[Message]:
        return [assistant_message(turn), user_results(turn)]
