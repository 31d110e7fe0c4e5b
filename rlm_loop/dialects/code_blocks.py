"""The code-block loop: fenced Python blocks are run in a persistent REPL, one cell each, in order.

`final_answer` set in the REPL, or a reply without a code block, is the answer (the Recursive Language Model's loop).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlm_loop.actions import Action, Answer, Malformed, Note, RunCode
from rlm_loop.dialects.answer_text import looks_like_refusal, strip_answer_prefix
from rlm_loop.dialects.base import NO_TOOLS, ActionMode, DialectDefaults, Problem, whole
from rlm_loop.dialects.fences import PYTHON, Block, FencedReply, read_fences
from rlm_loop.dialects.python_source import SHELLS
from rlm_loop.dialects.shown import assistant_message, system_message, task_message, user_results
from rlm_loop.dialects.wording import CODE_RULE, tool_lines
from rlm_loop.messages import Message, Prompt, Reply
from rlm_loop.outcome import Turn
from rlm_loop.tools.function import Tool


@dataclass(frozen=True)
class CodeBlocks(DialectDefaults):
    """Speak in fenced code.  `rule` is the system text, `languages` the labels of fences that are run."""

    rule: str = CODE_RULE
    heading: str = "Functions in the REPL:"
    languages: frozenset[str] = PYTHON
    name: str = "code"
    action_mode: ActionMode = "code"

    def format_task(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        return Prompt((*system_message(self.rule, tool_lines(self.heading, tools)), task_message(problem)))

    def parse_reply(self, reply: Reply, tools: Mapping[str, Tool] = NO_TOOLS) -> Sequence[Action]:
        refused = whole(reply)
        if refused is not None:
            return [refused]
        reading = read_fences(reply.text, languages=self.languages)
        runnable = [b for b in reading.blocks if b.code.strip()]
        if runnable:
            return [self._cell(block) for block in runnable]
        return [self._text(reply, reading)]

    def format_turn(self, turn: Turn) -> Sequence[Message]:
        return [assistant_message(turn), user_results(turn)]

    def _cell(self, block: Block) -> Action:
        if not block.closed and Note.NO_COMPILE in block.notes:
            return Malformed("The code block is not closed and does not compile.", notes=block.notes)
        return RunCode(block.code, notes=block.notes)

    def _text(self, reply: Reply, reading: FencedReply) -> Action:
        """The answer, or what keeps the text from being one."""
        empty, skipped, notes, prose = reading.blocks, reading.skipped, reading.notes, reading.prose
        if reply.tool_calls:
            return Malformed("There are no tool calls here; write a ```python block.", notes=notes)
        if empty:
            return Malformed("The code block is empty.", notes=notes)
        unread = next((b for b in skipped if Note.PYTHON in b.notes), None)
        if unread is not None and unread.language in self.languages:
            return Malformed("The code block is indented too far to be read as one.", notes=notes)
        unread = unread or next((b for b in skipped if b.language in SHELLS), None)
        if unread is not None:
            return Malformed(f"Only ```python blocks are run, not ```{unread.language}.", notes=notes)
        if skipped and not prose.strip() and not any(b.code.strip() for b in skipped):
            return Malformed("Only ```python blocks are run, and there is none.", notes=notes)
        if looks_like_refusal(reply.text):
            return Malformed("Please try: write a ```python block.", notes=(*notes, Note.REFUSAL))
        return Answer(strip_answer_prefix(reply.text).strip(), notes=notes)
