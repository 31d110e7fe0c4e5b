"""Exact causes of a prompt's tokens, for a model whose chat template and tokenizer are at hand.

The whole chat is rendered and tokenized once, as the model will read it; each token is charged to the piece of text
that holds its first character.  To know where each message lies in the rendered text, the chat is rendered a second
time with a unique mark in place of every text: what stands between the marks is the template's own.  (Searching for the
texts instead would find the word "user" in a role marker.)  What the template writes for tools and for tool calls is
found by rendering once more without them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rlm_loop.accounting.attribution import Part, apportion
from rlm_loop.messages import Message, Prompt, common

#: The tokens of a rendered text, each as the bytes that it stands for, beginning-of-text token included.
Tokenize = Callable[[str], Sequence[bytes]]
#: The rendered text of a request body (its `messages` and `tools`).
Render = Callable[[Mapping[str, Any]], str]


class Region(NamedTuple):
    """A stretch of the rendered text that is charged to one cause."""

    text: str
    cause: str
    turn: int
    message: int


def measure(prompt: Prompt, body: Mapping[str, Any], render: Render, tokenize: Tokenize, trailer: str) -> list[Part]:
    """Return the parts of a prompt in reading order; their sum is the number of tokens that the model reads.

    `body` is the request as it will be sent, `trailer` what the template writes after a user's text.
    """
    rendered = render(body)
    pieces = tokenize(rendered)
    starts = _align(rendered.encode(), pieces)
    cut = None if starts is None else _regions(prompt, body, rendered, render, trailer)
    if starts is None or cut is None:  # rewritten by the tokenizer or the template: the sum is exact all the same
        return apportion(prompt, len(pieces))
    return _count(cut, starts)


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


def _count(cut: Sequence[Region], starts: Sequence[int]) -> list[Part]:
    """Count the tokens of each region; a character's tokens all begin in the region that holds it."""
    parts: list[Part] = []
    end, token = 0, 0
    for region in cut:
        end += len(region.text.encode())
        first = token
        while token < len(starts) and starts[token] < end:
            token += 1
        if token > first:
            parts.append(Part(region.cause, region.turn, region.message, token - first))
    if token < len(starts):  # tokens without text at the very end
        parts.append(Part("template", 0, cut[-1].message if cut else 0, len(starts) - token))
    return parts


def _regions(
    prompt: Prompt, body: Mapping[str, Any], rendered: str, render: Render, trailer: str
) -> list[Region] | None:
    """Cut the rendered text into regions, in order and without gaps; `None` where the template moves texts about."""
    messages = prompt.messages
    nonce = hashlib.sha256(rendered.encode()).hexdigest()[:12]
    void = f"Z{nonce}vZ"  # some templates leave out a message that is quite empty
    marks = {i: f"Z{nonce}x{i}Z" for i, m in enumerate(messages) if m.text}
    skeleton = render(_marked(body, marks))
    marks = {i: mark for i, mark in marks.items() if mark in skeleton}
    gaps = _split(skeleton, marks.values())
    texts = _walk(rendered, gaps, [messages[i] for i in marks])
    if texts is None:
        return None
    bare = render({k: v for k, v in _marked(body, marks).items() if k != "tools"}) if prompt.tools else skeleton
    untooled = _split(bare, marks.values()) if all(mark in bare for mark in marks.values()) else gaps
    uncalled = gaps
    if any(message.tool_calls for message in messages):
        without = _marked(body, {**{i: void for i, m in enumerate(messages) if not m.text}, **marks})
        without["messages"] = [{k: v for k, v in m.items() if k != "tool_calls"} for m in without["messages"]]
        uncalled = [gap.replace(void, "") for gap in _split(render(without), marks.values())]
    cut: list[Region] = []
    order = [-1, *marks, len(messages)]
    for number, gap in enumerate(gaps):
        before, after = order[number], order[number + 1]
        callers = [i for i in range(max(before, 0), min(after, len(messages))) if messages[i].tool_calls]
        caller = callers[-1] if callers else before
        calls = _difference(gap, uncalled[number]) if callers else (0, 0)
        at, here = 0, before
        for start, end, cause in sorted([(*_difference(gap, untooled[number]), "tool_schema"), (*calls, "assistant")]):
            if end > (begin := max(start, at)):
                there = caller if cause == "assistant" else here
                cut += _template(gap[at:begin], here, there, messages, trailer)
                turn, index = (messages[caller].turn, caller) if cause == "assistant" else (0, -1)
                cut.append(Region(gap[begin:end], cause, turn, index))
                at, here = end, there
        cut += _template(gap[at:], here, after, messages, trailer)
        if number < len(texts):
            cut += [Region(text, cause, messages[after].turn, after) for text, cause in texts[number]]
    return cut


def _template(text: str, before: int, after: int, messages: Sequence[Message], trailer: str) -> Iterator[Region]:
    """Yield template text between two messages: the end of the first, then the head of the second."""
    cut = text.find(trailer) + len(trailer) if trailer and trailer in text else 0
    for piece, index in ((text[:cut], before), (text[cut:], after)):
        if piece:
            yield Region(piece, "template", messages[index].turn if 0 <= index < len(messages) else 0, index)


def _marked(body: Mapping[str, Any], marks: Mapping[int, str]) -> dict[str, Any]:
    changed = [dict(m, content=marks[i]) if i in marks else m for i, m in enumerate(body["messages"])]
    return {**body, "messages": changed}


def _split(text: str, marks: Iterable[str]) -> list[str]:
    gaps: list[str] = []
    for mark in marks:
        gap, _sep, text = text.partition(mark)
        gaps.append(gap)
    return [*gaps, text]


def _walk(rendered: str, gaps: Sequence[str], messages: Sequence[Message]) -> list[list[tuple[str, str]]] | None:
    """Return each message's text as it was rendered, span by span, if the gaps stand around it as the skeleton says."""
    if not rendered.startswith(gaps[0]):
        return None
    at, texts = len(gaps[0]), list[list[tuple[str, str]]]()
    for message, gap in zip(messages, gaps[1:], strict=True):
        for variant in _variants(message):
            text = "".join(piece for piece, _cause in variant)
            if rendered.startswith(text + gap, at):
                break
        else:  # rewritten, as where a template leaves earlier reasoning out: it reaches to the next gap
            last = len(texts) == len(messages) - 1
            end = len(rendered) - len(gap) if last else rendered.find(gap, at) if gap else -1
            if end < at or not rendered.startswith(gap, end):
                return None
            text = rendered[at:end]
            variant = list(_rewritten(message, text))
        texts.append(variant)
        at += len(text) + len(gap)
    return texts if at == len(rendered) else None


def _variants(message: Message) -> Iterator[list[tuple[str, str]]]:
    """Yield a message's spans as they are, trimmed as some templates do, and written as JSON text."""
    spans = [(span.text, span.cause) for span in message.spans]
    yield spans
    text = message.text
    for trimmed in (text.strip(), text.lstrip(), text.rstrip(), text.strip("\n")):
        start = text.find(trimmed)
        yield list(_clip(spans, start, start + len(trimmed)))
    for ascii_only in (False, True):
        yield [(json.dumps(piece, ensure_ascii=ascii_only)[1:-1], cause) for piece, cause in spans]


def _clip(spans: Sequence[tuple[str, str]], start: int, end: int) -> Iterator[tuple[str, str]]:
    at = 0
    for text, cause in spans:
        yield text[max(start - at, 0) : max(end - at, 0)], cause
        at += len(text)


def _rewritten(message: Message, text: str) -> Iterator[tuple[str, str]]:
    """Yield a text that the template changed: a span begins where it is found, the first at once."""
    spans = [span for span in message.spans if span.text.strip()] or message.spans[:1]
    cause, at, seen = spans[0].cause, 0, 0
    for span in spans[1:]:
        start = text.find(span.text.strip(), seen)
        if start >= 0:
            yield text[at:start], cause
            cause, at, seen = span.cause, start, start + len(span.text.strip())
    yield text[at:], cause


def _difference(longer: str, shorter: str) -> tuple[int, int]:
    """Return start and end of what the longer text has between the beginning and the end that both share."""
    start = common(longer, shorter)
    return start, len(longer) - common(longer[start:][::-1], shorter[start:][::-1])
