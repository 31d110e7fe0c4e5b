"""Where the tokens of a prompt come from, exactly, for a model whose chat template and tokenizer are at hand.

The whole chat is rendered and tokenized once, as the model will read it; each token is charged to the piece of
text in which it begins.  To know where each message lies in the rendered text, the chat is rendered a second
time with a unique mark in place of every text: what stands between the marks is the template's own.  (Searching
for the texts instead would find the word "user" in a role marker.)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_loop.ledger import Part, apportion
from rlm_loop.messages import Message, Prompt

#: The rendered text of a request body (its `messages` and `tools`).
Render = Callable[[Mapping[str, Any]], str]
#: The tokens of a rendered text, each as the bytes that it stands for, beginning-of-text token included.
Tokenize = Callable[[str], Sequence[bytes]]


@dataclass(frozen=True)
class Region:
    """A stretch of the rendered text that is charged to one cause."""

    text: str
    cause: str
    turn: int
    message: int


def measure(prompt: Prompt, body: Mapping[str, Any], render: Render, tokenize: Tokenize, trailer: str) -> list[Part]:
    """The parts of a prompt in reading order; their sum is the number of tokens that the model reads.

    `body` is the request as it will be sent, `trailer` what the template writes after a user's text.
    """
    rendered = render(body)
    pieces = tokenize(rendered)
    starts = align(rendered.encode(), pieces)
    if starts is None:  # a tokenizer that rewrites its text: the sum is exact all the same
        return apportion(prompt, len(pieces))
    return _count(regions(prompt, body, rendered, render, trailer), starts)


def align(text: bytes, pieces: Sequence[bytes]) -> list[int] | None:
    """The offset at which each token begins, or `None` where the tokens do not spell the text."""
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


def _count(found: Sequence[Region], starts: Sequence[int]) -> list[Part]:
    parts: list[Part] = []
    end, token = 0, 0
    for region in found:
        end += len(region.text.encode())
        first = token
        while token < len(starts) and starts[token] < end:
            token += 1
        if token > first:
            parts.append(Part(region.cause, region.turn, region.message, token - first))
    if token < len(starts):  # tokens without text at the very end
        parts.append(Part("template", 0, found[-1].message if found else 0, len(starts) - token))
    return parts


def regions(prompt: Prompt, body: Mapping[str, Any], rendered: str, render: Render, trailer: str) -> list[Region]:
    """The rendered text cut into regions, in order and without gaps."""
    messages = prompt.messages
    nonce = hashlib.sha256(rendered.encode()).hexdigest()[:12]
    marks = {i: f"Z{nonce}x{i}Z" for i, m in enumerate(messages) if m.text}
    skeleton = render(_marked(body, marks))
    marks = {i: mark for i, mark in marks.items() if mark in skeleton}
    gaps = _split(skeleton, list(marks.values()))
    order = list(marks)
    texts = _walk(rendered, gaps, [messages[i] for i in order])
    if texts is None:
        return _searched(rendered, prompt)
    schema = _inserted_by_tools(body, marks, skeleton, render) if prompt.tools else (0, 0)
    uncalled = _gaps_without_calls(body, marks, messages, render, f"Z{nonce}vZ")
    found: list[Region] = []
    at = 0
    for number, gap in enumerate(gaps):
        before = order[number - 1] if number else -1
        after = order[number] if number < len(order) else len(messages)
        cut = [min(max(edge - at, 0), len(gap)) for edge in schema]
        rest, plain = gap, uncalled[number]
        if cut[0] < cut[1]:
            found += _gap(gap[: cut[0]], before, before, messages, "")
            found.append(Region(gap[cut[0] : cut[1]], "tool_schema", 0, -1))
            rest, plain = gap[cut[1] :], plain[cut[1] :]
        callers = [i for i in range(max(before, 0), min(after, len(messages))) if messages[i].tool_calls]
        if callers and rest != plain:
            left, right = _difference(rest, plain)
            found += _gap(rest[:left], before, callers[-1], messages, trailer)
            found.append(Region(rest[left:right], "assistant", messages[callers[-1]].turn, callers[-1]))
            found += _gap(rest[right:], callers[-1], after, messages, trailer)
        else:
            found += _gap(rest, before, after, messages, trailer)
        at += len(gap)
        if number < len(order):
            message = messages[order[number]]
            found += [Region(text, cause, message.turn, order[number]) for text, cause in texts[number]]
            at += len(marks[order[number]])
    return found


def _marked(body: Mapping[str, Any], marks: Mapping[int, str]) -> dict[str, Any]:
    changed = [dict(m, content=marks[i]) if i in marks else m for i, m in enumerate(body["messages"])]
    return {**body, "messages": changed}


def _split(text: str, marks: Sequence[str]) -> list[str]:
    gaps: list[str] = []
    for mark in marks:
        gap, _sep, text = text.partition(mark)
        gaps.append(gap)
    return [*gaps, text]


def _walk(rendered: str, gaps: Sequence[str], messages: Sequence[Message]) -> list[list[tuple[str, str]]] | None:
    """What became of each message's text, span by span, if the gaps stand around it as the skeleton says."""
    if not rendered.startswith(gaps[0]):
        return None
    at, texts = len(gaps[0]), list[list[tuple[str, str]]]()
    for message, gap in zip(messages, gaps[1:], strict=True):
        for variant in _variants(message):
            text = "".join(piece for piece, _cause in variant)
            if rendered.startswith(text + gap, at):
                texts.append(variant)
                at += len(text) + len(gap)
                break
        else:
            return None
    return texts if at == len(rendered) else None


def _variants(message: Message) -> Iterator[list[tuple[str, str]]]:
    """A message's spans as they are, trimmed as some templates do, or written as JSON text."""
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


def _searched(rendered: str, prompt: Prompt) -> list[Region]:
    """For a template that rewrites texts: find what can be found, in order; the rest is the template's."""
    found: list[Region] = []
    at = 0
    for index, message in enumerate(prompt.messages):
        for span in message.spans:
            text = span.text if span.text in rendered[at:] else span.text.strip()
            start = rendered.find(text, at) if text else -1
            if start >= 0:
                found.append(Region(rendered[at:start], "template", message.turn, index))
                found.append(Region(text, span.cause, message.turn, index))
                at = start + len(text)
    return [*found, Region(rendered[at:], "template", 0, len(prompt.messages))]


def _inserted_by_tools(
    body: Mapping[str, Any], marks: Mapping[int, str], skeleton: str, render: Render
) -> tuple[int, int]:
    bare = {key: value for key, value in _marked(body, marks).items() if key != "tools"}
    return _difference(skeleton, render(bare))


def _gaps_without_calls(
    body: Mapping[str, Any], marks: Mapping[int, str], messages: Sequence[Message], render: Render, void: str
) -> list[str]:
    """The gaps as they would be if no earlier message had called a tool.

    Messages without text get the text `void`, because some templates leave out a message that is quite empty.
    """
    if not any(message.tool_calls for message in messages):
        return [""] * (len(marks) + 1)
    bare = _marked(body, {**{i: void for i, m in enumerate(messages) if not m.text}, **marks})
    bare["messages"] = [{k: v for k, v in m.items() if k != "tool_calls"} for m in bare["messages"]]
    return [gap.replace(void, "") for gap in _split(render(bare), list(marks.values()))]


def _difference(longer: str, shorter: str) -> tuple[int, int]:
    """Start and end of what the longer text has between the beginning and the end that both share."""
    start = _shared(longer, shorter)
    return start, len(longer) - _shared(longer[start:][::-1], shorter[start:][::-1])


def _shared(left: str, right: str) -> int:
    """How many characters two texts have in common at their start."""
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def _gap(text: str, before: int, after: int, messages: Sequence[Message], trailer: str) -> Iterator[Region]:
    """Template text between two messages: the end of the first, then the head of the second."""
    cut = text.find(trailer) + len(trailer) if trailer and trailer in text else 0
    for piece, index in ((text[:cut], before), (text[cut:], after)):
        if piece:
            turn = messages[index].turn if 0 <= index < len(messages) else 0
            yield Region(piece, "template", turn, index)
