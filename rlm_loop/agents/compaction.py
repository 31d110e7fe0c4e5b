"""Ways to make a prompt shorter: pure functions; the conversation decides when.

A turn is left out whole or not at all, so a call is never parted from its result, and what was there before the first
turn (system text, task, tool schemas) is never touched.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

from rlm_loop.actions import Observation
from rlm_loop.dialects.wording import LEFT_OUT, OUTPUT_LEFT_OUT, SUMMARISE, SUMMARY_OF
from rlm_loop.messages import Message, Prompt, Span
from rlm_loop.models.base import Model, ModelError
from rlm_loop.repl.text import RECORD_CAP, clip, clip_again

Policy = Literal["drop_outputs", "window", "summary"]

#: What the text that compaction writes is charged to.
CAUSE = "summary"
_RESULTS = frozenset({"tool_result", "repl_output", "error"})
LEAST = 200  # characters that an observation keeps
_CLIPPED = "\n[clipped: it does not fit the model's window; look at less at once]"


@dataclass(frozen=True)
class Compaction:
    """The rule by which a history is made shorter.

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
        if self.threshold_tokens is None and self.max_messages is None:
            raise ValueError("a Compaction without threshold_tokens and max_messages never happens; set one of them")
        for name in ("threshold_tokens", "max_messages", "keep_turns", "summary_tokens"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise ValueError(f"{name} of a Compaction is a whole number of at least 1, not {value!r}")


def plan_of(history: str | int | Compaction | None) -> Compaction | None:
    """The compaction of an agent's `history`: a policy's name, the most messages, or a `Compaction`; `None`: never.

    Raises `ValueError` as `Compaction` does.
    """
    if history is None or isinstance(history, Compaction):
        return history
    if isinstance(history, str):
        return Compaction(cast("Policy", history))
    return Compaction("window", threshold_tokens=None, max_messages=history)


def turns_in(prompt: Prompt) -> list[int]:
    """The turns that a prompt holds, in order."""
    return list(dict.fromkeys(m.turn for m in prompt.messages if m.turn))


def without_outputs(prompt: Prompt, kept: Collection[int]) -> Prompt:
    """The prompt with a mark in place of each result, where that is shorter, of the turns that are not `kept`."""
    stays = {0, *kept}
    messages = [m if m.turn in stays else replace(m, spans=tuple(map(_mark, m.spans))) for m in prompt.messages]
    return replace(prompt, messages=tuple(messages))


def without_turns(prompt: Prompt, kept: Collection[int], *, summary: str | None = None) -> Prompt:
    """The prompt with only the turns that are `kept`, and a line after the task that says so.

    What a later question of a session asked in a turn that is left out follows the task.
    `summary` stands for all turns left out.  Without one, that of an earlier compaction is kept.
    """
    turns = turns_in(prompt)
    if set(turns) <= set(kept):
        return prompt
    brief, rest = list[Message](), list[Message]()
    for message in prompt.messages:
        if message.turn in kept:
            rest.append(message)
        elif stay := tuple(s for s in message.spans if (s.cause == "task" if message.turn else s.cause != CAUSE)):
            _join(brief, Message("user", stay) if message.turn else replace(message, spans=stay))
    out = turns[-1] - len({m.turn for m in rest})  # with those of earlier compactions
    lines = [summary_in(prompt), LEFT_OUT.format(count=out)]
    if summary is not None:
        lines = [SUMMARY_OF.format(count=out) + summary]
    _join(brief, Message("user", tuple(Span(f"\n{line}", CAUSE) for line in lines if line)))
    return replace(prompt, messages=(*brief, *rest))


def _join(messages: list[Message], message: Message) -> None:
    """Append to the messages, a user's to the user's before it: some templates refuse two users in a row."""
    if messages and messages[-1].role == message.role == "user":
        message = replace(messages[-1], spans=(*messages.pop().spans, *message.spans))
    messages.append(message)


def summary_in(prompt: Prompt) -> str | None:
    """The summary that an earlier compaction left in the prompt, its heading included."""
    head = SUMMARY_OF.partition("{")[0]
    texts = [s.text.strip("\n") for m in prompt.messages if not m.turn for s in m.spans if s.cause == CAUSE]
    return next((t for t in texts if t.startswith(head)), None)


def summary_request(prompt: Prompt, dropped: Collection[int], words: int) -> Prompt:
    """The prompt for a summary of the `dropped` turns: they and the task, without tools."""
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


def _mark(span: Span) -> Span:
    """A result's mark, on a line of its own where the result was; what is shorter than its mark stays."""
    text = span.text.removeprefix("\n")
    mark = OUTPUT_LEFT_OUT.format(size=len(text))
    if span.cause not in _RESULTS or len(mark) >= len(text):
        return span
    return Span(span.text[: len(span.text) - len(text)] + mark, CAUSE)


def window_of(model: Model) -> int | None:
    """Return the tokens that prompt and reply may have together; `None` where nobody says."""
    try:
        return model.window
    except ModelError:  # a server that cannot be asked: the request will say so
        return None


def shorter(seen: Observation, over: int) -> Observation:
    """Return the observation with so many tokens less, taken as three characters each, and a line that says so."""
    text = seen.text.removesuffix(_CLIPPED)
    cut, _ = clip_again(text, max(LEAST, len(text) - 3 * over - len(_CLIPPED)))
    return replace(seen, text=cut + _CLIPPED, truncated=True, full=seen.full or clip(text, RECORD_CAP)[0])
