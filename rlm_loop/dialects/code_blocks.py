"""The code-block loop: fenced Python blocks are run in a persistent REPL, one cell each, in order.

`final_answer` set in the REPL, or a reply without a code block, is the answer (the Recursive Language Model's loop).  A
reply that is Python and sets `final_answer` is run, fenced or not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlm_loop.actions import Action, Answer, Malformed, Note, RunCode
from rlm_loop.dialects.base import ActionMode, Dialect
from rlm_loop.dialects.fences import PYTHON, FencedReply, read_fences
from rlm_loop.dialects.reader import before_invented, cells_of, looks_like_refusal, strip_answer_prefix
from rlm_loop.dialects.wording import CODE_RULE
from rlm_loop.messages import Reply
from rlm_loop.tools.function import Tool
from rlm_loop.tools.python_source import SHELLS, looks_like_python

_SETS_ANSWER = re.compile(r"^final_answer[ \t]*=(?!=)", re.MULTILINE)


@dataclass(frozen=True)
class CodeBlocks(Dialect):
    """Speak in fenced code.  `rule` is the system text, `languages` the labels of fences that are run."""

    rule: str = CODE_RULE
    heading: str = "Functions in the REPL:"
    languages: frozenset[str] = PYTHON
    name: str = "code"
    action_mode: ActionMode = "code"
    may_block: bool = False

    def read(self, text: str, reply: Reply, tools: Mapping[str, Tool]) -> Sequence[Action]:
        own = before_invented(text)
        reading = read_fences(own, languages=self.languages)
        if cells := cells_of(reading.blocks):
            return cells
        if _SETS_ANSWER.search(own) and looks_like_python(own.strip()):
            return [RunCode(own.strip(), notes=(*reading.notes, "code without a fence"))]
        if problem := self._problem(reply, reading):
            return [Malformed(problem, notes=reading.notes)]
        if looks_like_refusal(text):
            return [Malformed("Please try: write a ```python block.", notes=(*reading.notes, Note.REFUSAL))]
        return [Answer(strip_answer_prefix(text).strip(), notes=reading.notes)]

    def _problem(self, reply: Reply, reading: FencedReply) -> str:
        """Return the reason why a text without code is no answer; "" where it is one."""
        if reply.tool_calls:
            return "There are no tool calls here; write a ```python block."
        if reading.blocks:
            return "The code block is empty."
        for block in sorted(reading.skipped, key=lambda block: Note.PYTHON not in block.notes):
            if Note.PYTHON in block.notes and block.language in self.languages:
                return "The code block is indented too far to be read as one."
            if Note.PYTHON in block.notes or block.language in SHELLS:
                return f"Only ```python blocks are run, not ```{block.language}."
        if reading.skipped and not reading.prose.strip() and not any(b.code.strip() for b in reading.skipped):
            return "Only ```python blocks are run, and there is none."
        return ""
