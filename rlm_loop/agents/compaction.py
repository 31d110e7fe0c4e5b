"""Making a prompt shorter: which parts of a history are left out, and what stands in their place.

Pure functions over prompts.  A turn is left out whole or not at all, so a call is never parted from its result, and
what was there before the first turn (system text, task, tool schemas) is never touched.  `history` says when.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

from rlm_loop.dialects.wording import LEFT_OUT, OUTPUT_LEFT_OUT, SUMMARISE, SUMMARY_OF
from rlm_loop.messages import Message, Prompt, Span

Policy = Literal["drop_outputs", "window", "summary"]

#: What the text that compaction writes is charged to.
CAUSE = "summary"
_RESULTS = frozenset({"tool_result", "repl_output", "error"})


@dataclass(frozen=True)
class Compaction:
    """When a history is made shorter, and how.

    `threshold_tokens` is the longest prompt that is sent as it is (system, task and schemas included; `None`: any
    length), `max_messages` the same in messages.  Beyond it `policy` is applied: `drop_outputs` (results become a short
    mark with their size), `window` (whole turns are left out) or `summary` (they are summarised by one model call of at
    most `summary_tokens`).  The last `keep_turns` turns stay as they are, fewer only where they do not fit.
    `max_messages` alone leaves out no more turns than it has to.
    Raises `ValueError` in one line for anything else.
    """

    policy: Policy = "drop_outputs"
    threshold_tokens: int | None = 6_000
    keep_turns: int = 4
    max_messages: int | None = None
    summary_tokens: int = 300

    def __post_init__(self) -> None:
        if self.policy not in get_args(Policy):
            raise ValueError(f"unknown policy {self.policy!r}; take one of {', '.join(get_args(Policy))}")
        for name in ("threshold_tokens", "keep_turns", "max_messages", "summary_tokens"):
            value: object = getattr(self, name)
            if value is None and name in ("threshold_tokens", "max_messages"):
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} of a Compaction is a whole number of at least 1, not {value!r}")
        if self.threshold_tokens is None and self.max_messages is None:
            raise ValueError("a Compaction without threshold_tokens and max_messages never happens; set one of them")


def plan_of(history: str | int | Compaction | None) -> Compaction | None:
    """The compaction of an agent's `history`: a policy's name, the most messages, or a `Compaction`; `None`: never.

    Raises `ValueError` for anything else.
    """
    if history is None or isinstance(history, Compaction):
        return history
    if isinstance(history, str) and history in get_args(Policy):
        return Compaction(cast("Policy", history))
    if isinstance(history, bool) or not isinstance(history, int) or history < 1:
        known = ", ".join(f'"{policy}"' for policy in get_args(Policy))
        raise ValueError(
            f"history must be None, {known}, a number of messages (1 or more) or Compaction(...), got {history!r}"
        )
    return Compaction("window", threshold_tokens=None, max_messages=history)


def turns_in(prompt: Prompt) -> list[int]:
    """The turns that a prompt holds, in order."""
    return list(dict.fromkeys(m.turn for m in prompt.messages if m.turn))


def without_outputs(prompt: Prompt, kept: Collection[int]) -> Prompt:
    """The prompt with a mark in place of each result, where that is shorter, of the turns that are not `kept`."""
    messages = (m if not m.turn or m.turn in kept else _marked(m) for m in prompt.messages)
    return replace(prompt, messages=tuple(messages))


def without_turns(prompt: Prompt, kept: Collection[int], *, summary: str | None = None) -> Prompt:
    """The prompt with only the turns that are `kept`, and a line after the task that says so.

    What was asked in a turn that is left out, by a later question of a session, stays in its place.
    `summary` stands for all turns left out.  Without one, that of an earlier compaction is kept.
    """
    turns = turns_in(prompt)
    if set(turns) <= set(kept):
        return prompt
    rest = [m for m in prompt.messages if m.turn in kept]
    out = turns[-1] - len({m.turn for m in rest})  # those of earlier compactions included
    if summary is None:
        lines = [*([before] if (before := summary_in(prompt)) else []), LEFT_OUT.format(count=out)]
    else:
        lines = [SUMMARY_OF.format(count=out) + summary]
    messages: list[Message] = []
    brief = 0  # messages before the first turn that is kept
    for message in prompt.messages:
        stays = message if message.turn in kept else _bare(message) if not message.turn else _question(message)
        if stays is None:
            continue
        if not stays.turn and messages and not messages[-1].turn and messages[-1].role == stays.role == "user":
            messages[-1] = replace(messages[-1], spans=(*messages[-1].spans, *stays.spans))
        else:
            messages.append(stays)
        if not any(m.turn for m in messages):
            brief = len(messages)
    if brief and messages[brief - 1].role == "user":  # joined to the task: some templates refuse two users in a row
        messages[brief - 1] = replace(messages[brief - 1], spans=(*messages[brief - 1].spans, *_spans(lines)))
    else:
        messages.insert(brief, Message("user", _spans(lines)))
    return replace(prompt, messages=tuple(messages))


def summary_in(prompt: Prompt) -> str | None:
    """The summary that an earlier compaction left in the prompt, its heading included."""
    head = SUMMARY_OF.partition("{")[0]
    texts = [s.text.strip("\n") for m in prompt.messages if not m.turn for s in m.spans if s.cause == CAUSE]
    return next((t for t in texts if t.startswith(head)), None)


def summary_request(prompt: Prompt, dropped: Collection[int], words: int) -> Prompt:
    """What a model is asked for a summary of the `dropped` turns: they and the task, without tools."""
    spans = [Span("Task:\n", CAUSE)]
    spans += [s for m in prompt.messages if m.role == "user" for s in m.spans if s.cause == "task"]
    if before := summary_in(prompt):
        spans.append(Span(f"\n\n{before}", CAUSE))
    for message in prompt.messages:
        if message.turn in dropped:
            spans.append(Span(f"\n\n[turn {message.turn}, {message.role}]\n", CAUSE))
            spans += message.spans
            spans += [Span(f"\n{c.name}({c.arguments})", "assistant") for c in message.tool_calls]
    spans.append(Span("\n\n" + SUMMARISE.format(words=words), CAUSE))
    return Prompt((Message("user", tuple(spans)),))


def _marked(message: Message) -> Message:
    return replace(message, spans=tuple(_mark(span) for span in message.spans))


def _mark(span: Span) -> Span:
    """A result's mark, on a line of its own where the result was; what is shorter than its mark stays."""
    text = span.text.removeprefix("\n")
    mark = OUTPUT_LEFT_OUT.format(size=len(text))
    if span.cause not in _RESULTS or len(mark) >= len(text):
        return span
    return Span(span.text[: len(span.text) - len(text)] + mark, CAUSE)


def _bare(message: Message) -> Message | None:
    """A message of the brief without what an earlier compaction added to it; `None` where that is all of it."""
    spans = tuple(s for s in message.spans if s.cause != CAUSE)
    return replace(message, spans=spans) if spans or not message.spans else None


def _question(message: Message) -> Message | None:
    """What was asked in a message of a turn that is left out: a question of a session always stays."""
    asked = tuple(s for s in message.spans if s.cause == "task")
    return Message("user", asked) if asked else None


def _spans(lines: Iterable[str]) -> tuple[Span, ...]:
    return tuple(Span(f"\n{line}", CAUSE) for line in lines)
