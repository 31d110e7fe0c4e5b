"""The code-block loop: fenced Python blocks are run in a persistent REPL, one cell each, in order.

`final_answer` set in the REPL, or a reply without a code block, is the answer (the Recursive Language Model's loop).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlm_loop.actions import Action, Answer, Malformed, Note
from rlm_loop.dialects.answer_text import looks_like_refusal, strip_answer_prefix
from rlm_loop.dialects.base import NO_TOOLS, ActionMode, DialectDefaults, Problem, text_to_read
from rlm_loop.dialects.fences import PYTHON, FencedReply, read_fences
from rlm_loop.dialects.python_source import SHELLS
from rlm_loop.dialects.reader import cells_of
from rlm_loop.dialects.shown import assistant_message, system_message, task_message, user_results
from rlm_loop.dialects.wording import CODE_RULE, tool_lines
from rlm_loop.messages import Message, Prompt, Reply
from rlm_loop.outcome import Turn
from rlm_loop.tools.function import Tool


@dataclass(frozen=True)
class CodeBlocks(DialectDefaults):
    """Speak in fenced code.  `rule` is the system text, `languages` the labels of fences that are run.

    With `may_block` a line `BLOCKED: reason` gives up.
    """

    rule: str = CODE_RULE
    heading: str = "Functions in the REPL:"
    languages: frozenset[str] = PYTHON
    name: str = "code"
    action_mode: ActionMode = "code"
    may_block: bool = False

    def format_task(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        return Prompt((*system_message(self.rule, tool_lines(self.heading, tools)), task_message(problem)))

    def parse_reply(self, reply: Reply, tools: Mapping[str, Tool] = NO_TOOLS) -> Sequence[Action]:
        text = text_to_read(reply, may_block=self.may_block)
        if isinstance(text, Malformed):
            return [text]
        reading = read_fences(text, languages=self.languages)
        if cells := cells_of(reading.blocks):
            return cells
        problem = self._problem(reply, reading)
        if problem:
            return [Malformed(problem, notes=reading.notes)]
        if looks_like_refusal(text):
            return [Malformed("Please try: write a ```python block.", notes=(*reading.notes, Note.REFUSAL))]
        return [Answer(strip_answer_prefix(text).strip(), notes=reading.notes)]

    def format_turn(self, turn: Turn) -> Sequence[Message]:
        return [assistant_message(turn), user_results(turn)]

    def _problem(self, reply: Reply, reading: FencedReply) -> str:
        """Return the reason why a text without code is no answer; "" where it is one."""
        if reply.tool_calls:
            return "There are no tool calls here; write a ```python block."
        if reading.blocks:
            return "The code block is empty."
        skipped = reading.skipped
        unread = next((b for b in skipped if Note.PYTHON in b.notes), None)
        if unread is not None and unread.language in self.languages:
            return "The code block is indented too far to be read as one."
        if unread := unread or next((b for b in skipped if b.language in SHELLS), None):
            return f"Only ```python blocks are run, not ```{unread.language}."
        if skipped and not reading.prose.strip() and not any(b.code.strip() for b in skipped):
            return "Only ```python blocks are run, and there is none."
        return ""
