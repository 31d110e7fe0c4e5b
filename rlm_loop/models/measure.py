"""Exact causes of a prompt's tokens, for a model whose chat template and tokenizer are at hand.

The whole chat is rendered and tokenized once, as the model will read it; each token is charged to the piece of text
that holds its first character.  To know where each message lies in the rendered text, the chat is rendered a second
time with a unique mark in place of every text: what stands between the marks is the template's own.  (Searching for the
texts instead would find the word "user" in a role marker.)  What the template writes for tools and for tool calls is
found by rendering once more without them.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rlm_loop.accounting.attribution import Part, apportion
from rlm_loop.messages import Message, Prompt, common

#: The tokens of a rendered text, each as the bytes that it stands for, beginning-of-text token included.
Tokenize = Callable[[str], Sequence[bytes]]
#: The rendered text of a request body (its `messages` and `tools`).
Render = Callable[[Mapping[str, Any]], str]
#: A stretch of the rendered text, its cause, the turn and the message that it is charged to.
Region = tuple[str, str, int, int]


def measure(prompt: Prompt, body: Mapping[str, Any], render: Render, tokenize: Tokenize) -> list[Part]:
    """Return the parts of a prompt in reading order; their sum is the number of tokens that the model reads.

    `body` is the request as it will be sent.  What the template writes between two messages is charged to the second.
    """
    rendered = render(body)
    pieces = tokenize(rendered)
    starts = _align(rendered.encode(), pieces)
    regions = None if starts is None else _regions(prompt, body, rendered, render)
    if starts is None or regions is None:  # rewritten by the tokenizer or the template: the sum is exact all the same
        return apportion(prompt, len(pieces))
    parts: list[Part] = []
    end, token = 0, 0
    for text, cause, turn, message in regions:
        end += len(text.encode())
        first, token = token, bisect_left(starts, end)
        if token > first:
            parts.append(Part(cause, turn, message, token - first))
    if token < len(starts):  # tokens without text at the very end
        parts.append(Part("template", 0, len(prompt.messages), len(starts) - token))
    return parts


def _align(text: bytes, pieces: Sequence[bytes]) -> list[int] | None:
    """Return the offset at which each token begins, or `None` where the tokens do not spell the text."""
    starts: list[int] = []
    at = 0
    for piece in pieces:
        starts.append(at)
        if text.startswith(piece, at):
            at += len(piece)
        elif piece.startswith(b" ") and text.startswith(piece[1:], at):
            at += len(piece) - 1  # SentencePiece puts a space of its own before a text
        # else: a token without text of its own, as the beginning-of-text token
    return starts if at == len(text) else None


def _regions(prompt: Prompt, body: Mapping[str, Any], rendered: str, render: Render) -> list[Region] | None:
    """Cut the rendered text into regions, in order and without gaps; `None` where that cannot be done."""
    messages, nonce = prompt.messages, hashlib.sha256(rendered.encode()).hexdigest()[:12]
    marked = [dict(m, content=f"Z{nonce}x{i}Z") if m["content"] else m for i, m in enumerate(body["messages"])]

    def split(**changed: Any) -> list[str]:
        """Return the template's text before, between and after the marks, which stand between: numbers of messages."""
        request = {k: v for k, v in {**body, "messages": marked, **changed}.items() if v is not None}
        return re.split(f"Z{nonce}x([0-9]+)Z", render(request))

    gaps, shown = (cut := split())[::2], [int(number) for number in cut[1::2]]
    texts = _texts(rendered, gaps, [messages[i] for i in shown])
    if texts is None:
        return None
    untooled = split(tools=None)[::2] if prompt.tools else gaps
    uncalled = gaps
    if any(message.tool_calls for message in messages):
        uncalled = split(messages=[{k: v for k, v in m.items() if k != "tool_calls"} for m in marked])[::2]
    if not len(gaps) == len(untooled) == len(uncalled):
        return None
    regions: list[Region] = []

    def charge(text: str, cause: str, index: int) -> None:
        regions.append((text, cause, messages[index].turn if 0 <= index < len(messages) else 0, index))

    for number, (before, after) in enumerate(zip([-1, *shown], [*shown, len(messages)])):
        gap, at, here = gaps[number], 0, before
        caller = max((i for i in range(max(before, 0), after) if messages[i].tool_calls), default=before)
        schema, calls = _difference(gap, untooled[number]), _difference(gap, uncalled[number])
        for start, end, called in sorted([(*schema, False), (*calls, True)]):
            if end > (start := max(start, at)):
                here = caller if called else here
                charge(gap[at:start], "template", here)
                charge(gap[start:end], "assistant" if called else "tool_schema", caller if called else -1)
                at = end
        charge(gap[at:], "template", after)
        for text, cause in texts[number] if number < len(texts) else ():
            charge(text, cause, after)
    return regions


def _texts(rendered: str, gaps: Sequence[str], messages: Sequence[Message]) -> list[list[tuple[str, str]]] | None:
    """Return each message's text as it was rendered, with causes, if the gaps stand around it as the skeleton says."""
    if not rendered.startswith(gaps[0]):
        return None
    at, texts = len(gaps[0]), list[list[tuple[str, str]]]()
    for message, gap in zip(messages, gaps[1:], strict=True):
        text, pieces = message.text, [(span.text, span.cause) for span in message.spans]
        if not rendered.startswith(text + gap, at):  # trimmed, or earlier reasoning is left out: to the next gap
            last = len(texts) == len(messages) - 1
            end = len(rendered) - len(gap) if last else rendered.find(gap, at) if gap else -1
            if end < at or not rendered.startswith(gap, end):
                return None
            text = rendered[at:end]
            pieces = list(_changed(message, text))
        texts.append(pieces)
        at += len(text) + len(gap)
    return texts if at == len(rendered) else None


def _changed(message: Message, text: str) -> Iterator[tuple[str, str]]:
    """Yield a text that the template changed: a span begins where it is found, the first at once."""
    first, *others = [span for span in message.spans if span.text.strip()] or message.spans[:1]
    cause, at = first.cause, 0
    for span in others:
        if (start := text.find(span.text.rstrip(), at)) >= 0:
            yield text[at:start], cause
            cause, at = span.cause, start
    yield text[at:], cause


def _difference(longer: str, shorter: str) -> tuple[int, int]:
    """Return start and end of what the longer text has between the beginning and the end that both share."""
    start = common(longer, shorter)
    return start, len(longer) - common(longer[start:][::-1], shorter[start:][::-1])
