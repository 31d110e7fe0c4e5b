"""A dialect, the way in which a strategy speaks, and the parts that dialects share.  Pure: no state and no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rlm_loop.actions import Action, Answer, Malformed, Note, Observation
from rlm_loop.dialects.reader import blocked_reason, without_reasoning
from rlm_loop.dialects.wording import NO_OUTPUT, tool_lines
from rlm_loop.messages import Message, Prompt, Reply, Span, say
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


class Dialect:
    """The language of one strategy: it puts a task, reads a reply, and shows a turn back.

    `action_mode` says how it acts: by `code` (tools are functions in the REPL), by `calls` (the REPL is one of the
    tools), or not at all.  `parse_reply` is total: any reply gives at least one action, and it never raises; the tools
    tell it which names in a text are calls.

    By default a fixed text (`rule`), the tools under a `heading` and the question are put, and results are shown as a
    user message after the model's words, up to `observation_cap` characters each.  `read` is given a reply's text
    without its reasoning, unless the reply must not be read; with `may_block` a line `BLOCKED: reason` gives up.
    """

    name: str
    action_mode: ActionMode
    rule: str = ""
    heading: str = ""
    observation_cap: int = HARD_CAP
    may_block: bool = False

    def format_task(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        return Prompt((*system_message(self.rule, tool_lines(self.heading, tools)), task_message(problem)))

    def parse_reply(self, reply: Reply, tools: Mapping[str, Tool] = NO_TOOLS) -> Sequence[Action]:
        text = text_to_read(reply, may_block=self.may_block)
        return [text] if isinstance(text, Malformed) else self.read(text, reply, tools)

    def read(self, text: str, reply: Reply, tools: Mapping[str, Tool]) -> Sequence[Action]:
        raise NotImplementedError

    def format_turn(self, turn: Turn) -> Sequence[Message]:
        return [assistant_message(turn), Message("user", result_spans(turn), turn=turn.index)]


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


def system_message(*texts: str) -> tuple[Message, ...]:
    """Return a system message of these texts, a line each; none if all are empty."""
    text = "\n".join(filter(None, texts))
    return (Message("system", (Span(text, "system"),)),) if text else ()


def task_message(problem: Problem) -> Message:
    """Return the question, and one line about the context variable where there is one."""
    text = "\n".join(filter(None, [problem.question, problem.context]))
    return Message("user", (Span(text, "task"),))


def assistant_message(turn: Turn, text: str | None = None) -> Message:
    """Return the model's words in a turn, or the part of them that counts."""
    said = turn.reply.text if text is None else text
    return Message("assistant", (Span(said, "assistant"),) if said else (), turn=turn.index)


def result_span(observation: Observation) -> Span:
    """Return a result as the model sees it: the same words in every dialect."""
    return Span(observation.text.rstrip("\n") or NO_OUTPUT, observation.cause)


def result_spans(turn: Turn) -> tuple[Span, ...]:
    """Return the results of a turn's actions, one after another on lines of their own."""
    spans = list(map(result_span, turn.observations))
    return (*spans[:1], *(Span("\n" + span.text, span.cause) for span in spans[1:]))


@dataclass(frozen=True)
class Direct(Dialect):
    """Ask once, without a loop: the question with its material.  `rule` is an optional system text."""

    rule: str = ""
    name: str = "direct"
    action_mode: ActionMode = "none"
    may_block: bool = False

    def format_task(self, problem: Problem, tools: Mapping[str, Tool]) -> Prompt:
        text = "\n\n".join(filter(None, [problem.inline, problem.question]))
        return Prompt((*system_message(self.rule), say("user", text, "task")))

    def read(self, text: str, reply: Reply, tools: Mapping[str, Tool]) -> Sequence[Action]:
        return [Answer(text.strip())]
