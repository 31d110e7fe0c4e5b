"""The protocol of dialects, as which strategies speak.  Pure: no state and no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from rlm_loop.actions import Action, Malformed, Note
from rlm_loop.dialects.answer_text import blocked_reason
from rlm_loop.dialects.reader import without_reasoning
from rlm_loop.messages import Message, Prompt, Reply
from rlm_loop.outcome import Turn
from rlm_loop.repl.text import HARD_CAP
from rlm_loop.tools.function import Tool

NO_TOOLS: Mapping[str, Tool] = {}

ActionMode = Literal["code", "calls", "none"]


@dataclass(frozen=True)
class Problem:
    """A question as every strategy is told it.

    `context` is one line about the REPL variable of that name (type, size, a preview), `inline` is for a
    strategy without tools: the material itself, already clipped.
    """

    question: str
    context: str = ""
    inline: str = ""


class Dialect(Protocol):
    """The language of one strategy: it puts a task, reads a reply, and shows a turn back.

    `action_mode` says how it acts: by `code` (tools are functions in the REPL), by `calls` (the REPL is one of the
    tools), or not at all.  `parse_reply` is total: any reply gives at least one action, and it never raises; the tools
    tell it which names in a text are calls.  `observation_cap` is how many characters of a result are shown (at most
    the hard cap, `repl.text.HARD_CAP`, which is what a subclass of `DialectDefaults` has).
    """

    @property
    def name(self) -> str: ...

    @property
    def action_mode(self) -> ActionMode: ...

    @property
    def observation_cap(self) -> int: ...

    def format_task(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt: ...

    def parse_reply(self, reply: Reply, tools: Mapping[str, Tool] = NO_TOOLS) -> Sequence[Action]: ...

    def format_turn(self, turn: Turn) -> Sequence[Message]: ...


class DialectDefaults:
    """A base class for dialects: results are shown up to the hard cap."""

    observation_cap: int = HARD_CAP


def text_to_read(reply: Reply, *, may_block: bool = False) -> str | Malformed:
    """Return the reply's text without its reasoning, or why it must not be read: cut off, filtered or empty.

    With `may_block`, a reply that begins or ends with a line `BLOCKED: reason` is not read either.
    """
    if reply.cut_off:
        return Malformed("Your reply was cut off by the length limit. Be shorter.", "cut_off")
    if reply.finish_reason == "content_filter":
        return Malformed("The reply was withheld by a content filter.")
    text = without_reasoning(reply.text)
    if not text.strip() and not reply.tool_calls:
        return Malformed("The reply was reasoning alone." if reply.text.strip() else "The reply was empty.")
    if may_block and not reply.tool_calls and (reason := blocked_reason(text)):
        return Malformed(reason, notes=(Note.BLOCKED,))
    return text
