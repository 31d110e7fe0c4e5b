"""What of a prompt is scaffold: all that is neither the task, nor the model's own words, nor an observation.

Each message of each prompt is cut into spans of four causes.  The task counts where it is said first, each reply once
and each observation once, in the order of the turns; a second copy of any of them (an echo of the code, the task said
again) is scaffold.  Role markers and other text of the chat template are `template`, tool schemas `tool_schema`, as the
model's own template writes them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from wire_session import OBSERVATION, TASK, Piece, Step

from rlm_loop.messages import Message, Prompt, Span, ToolCall

CAUSES = ("task", "reply", "observation", "scaffold", "tool_schema", "template")


@dataclass(frozen=True)
class Found:
    """A prompt whose spans have these causes, and what of the session was looked for in it in vain."""

    prompt: Prompt
    missing: tuple[str, ...]


def attribute(prompt: Prompt, steps: Sequence[Step]) -> Found:
    """Charge the texts of a prompt that comes after these steps of the session."""
    texts = [message.text for message in prompt.messages]
    whole = "\0".join(texts)  # a character that is in none of them
    marks, missing = _marks(whole, prompt, steps)
    messages: list[Message] = []
    at = 0
    for message, text in zip(prompt.messages, texts, strict=True):
        spans = tuple(_spans(whole, marks, at, at + len(text)))
        messages.append(replace(message, spans=spans))
        at += len(text) + 1
    return Found(replace(prompt, messages=tuple(messages)), tuple(missing))


def _marks(whole: str, prompt: Prompt, steps: Sequence[Step]) -> tuple[list[tuple[int, int, str]], list[str]]:
    """Where the task, the replies and the observations lie: start, end and cause, in order."""
    marks: list[tuple[int, int, str]] = []
    missing: list[str] = []
    start = whole.find(TASK)
    if start < 0:
        missing.append("the task")
    else:
        marks.append((start, start + len(TASK), "task"))
    at = max(start, 0) + len(TASK) if start >= 0 else 0
    native = {_plain(call) for message in prompt.messages for call in message.tool_calls}
    for number, step in enumerate(steps, 1):
        seen = whole.find(OBSERVATION, at) if step.observed else -1
        end = seen if seen >= 0 else len(whole)
        calls = {_plain(call) for call in step.reply.tool_calls}
        for piece in step.pieces:
            place = _first(whole, piece, at, end)
            if place is None:
                if not (calls and calls <= native):  # sent back as the call that it was
                    missing.append(f"turn {number}: {piece[0][:40]}")
                continue
            marks.append((*place, "reply"))
            at = place[1]
        if not step.observed:
            continue
        if seen < 0:
            missing.append(f"turn {number}: the observation")
            continue
        at = seen + len(OBSERVATION)
        marks.append((seen, at, "observation"))
    return sorted(marks), missing


def _plain(call: ToolCall) -> tuple[str, str]:
    """A call however its JSON was spaced: some frameworks write it anew."""
    try:
        return call.name, json.dumps(json.loads(call.arguments or "{}"), sort_keys=True)
    except ValueError:
        return call.name, call.arguments


def _first(whole: str, piece: Piece, start: int, end: int) -> tuple[int, int] | None:
    for text in piece:
        for form in (text, text.strip()):
            place = whole.find(form, start, end)
            if place >= 0:
                return place, place + len(form)
    return None


def _spans(whole: str, marks: Sequence[tuple[int, int, str]], start: int, end: int) -> list[Span]:
    spans: list[Span] = []
    at = start
    for first, last, cause in marks:
        if first >= start and last <= end:
            if first > at:
                spans.append(Span(whole[at:first], "scaffold"))
            spans.append(Span(whole[first:last], cause))
            at = last
    if end > at:
        spans.append(Span(whole[at:end], "scaffold"))
    return spans
