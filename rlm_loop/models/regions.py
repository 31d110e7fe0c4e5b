"""The rendered text of a chat, cut into stretches that are each charged to one cause.

To know where each message lies in the rendered text, the chat is rendered a second time with a unique mark in place
of every text: what stands between the marks is the template's own.  (Searching for the texts instead would find the
word "user" in a role marker.)  What the template writes for tools and for tool calls is found by rendering once more
without them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_loop.messages import Message, Prompt

#: The rendered text of a request body (its `messages` and `tools`).
Render = Callable[[Mapping[str, Any]], str]
_NOTHING = (0, 0)


@dataclass(frozen=True)
class Region:
    """A stretch of the rendered text that is charged to one cause."""

    text: str
    cause: str
    turn: int
    message: int


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
    schemas = _schemas(body, marks, gaps, skeleton, render) if prompt.tools else [_NOTHING] * len(gaps)
    uncalled = _gaps_without_calls(body, marks, messages, render, f"Z{nonce}vZ")
    found: list[Region] = []
    for number, gap in enumerate(gaps):
        before = order[number - 1] if number else -1
        after = order[number] if number < len(order) else len(messages)
        callers = [i for i in range(max(before, 0), min(after, len(messages))) if messages[i].tool_calls]
        calls = _difference(gap, uncalled[number]) if callers else _NOTHING
        caller = callers[-1] if callers else before
        found += _cut(gap, before, after, caller, schemas[number], calls, messages, trailer)
        if number < len(order):
            message = messages[order[number]]
            found += [Region(text, cause, message.turn, order[number]) for text, cause in texts[number]]
    return found


def _cut(
    gap: str,
    before: int,
    after: int,
    caller: int,
    schema: tuple[int, int],
    calls: tuple[int, int],
    messages: Sequence[Message],
    trailer: str,
) -> Iterator[Region]:
    """What stands between two messages: template text, in which the tools' schemas and a message's calls may be."""
    at, here = 0, before
    for start, end, cause in sorted([(*schema, "tool_schema"), (*calls, "assistant")]):
        begin = max(start, at)
        if end <= begin:
            continue
        there = caller if cause == "assistant" else here
        yield from _gap(gap[at:begin], here, there, messages, trailer)
        if cause == "assistant":
            yield Region(gap[begin:end], cause, messages[caller].turn, caller)
        else:
            yield Region(gap[begin:end], cause, 0, -1)
        at, here = end, there
    yield from _gap(gap[at:], here, after, messages, trailer)


def _gap(text: str, before: int, after: int, messages: Sequence[Message], trailer: str) -> Iterator[Region]:
    """Template text between two messages: the end of the first, then the head of the second."""
    cut = text.find(trailer) + len(trailer) if trailer and trailer in text else 0
    for piece, index in ((text[:cut], before), (text[cut:], after)):
        if piece:
            turn = messages[index].turn if 0 <= index < len(messages) else 0
            yield Region(piece, "template", turn, index)


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
    for number, (message, gap) in enumerate(zip(messages, gaps[1:], strict=True)):
        for variant in _variants(message):
            text = "".join(piece for piece, _cause in variant)
            if rendered.startswith(text + gap, at):
                break
        else:  # rewritten, as where a template leaves earlier reasoning out: it reaches to the next gap
            last = number == len(messages) - 1
            end = len(rendered) - len(gap) if last else rendered.find(gap, at) if gap else -1
            if end < at or not rendered.startswith(gap, end):
                return None
            variant = list(_rewritten(message, rendered[at:end]))
            text = rendered[at:end]
        texts.append(variant)
        at += len(text) + len(gap)
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


def _rewritten(message: Message, text: str) -> Iterator[tuple[str, str]]:
    """A text that the template changed: spans that are found in it begin where they are found, the first at once."""
    spans = [span for span in message.spans if span.text.strip()] or message.spans[:1]
    cause, at, seen = spans[0].cause, 0, 0
    for span in spans[1:]:
        start = text.find(span.text.strip(), seen)
        if start >= 0:
            yield text[at:start], cause
            cause, at, seen = span.cause, start, start + len(span.text.strip())
    yield text[at:], cause


def _searched(rendered: str, prompt: Prompt) -> list[Region]:
    """For a template that moves texts about: find what can be found, in order; the rest is the template's."""
    found: list[Region] = []
    at = 0
    for index, message in enumerate(prompt.messages):
        for span in message.spans:
            text = span.text if rendered.find(span.text, at) >= 0 else span.text.strip()
            start = rendered.find(text, at) if text else -1
            if start >= 0:
                found.append(Region(rendered[at:start], "template", message.turn, index))
                found.append(Region(text, span.cause, message.turn, index))
                at = start + len(text)
    return [*found, Region(rendered[at:], "template", 0, len(prompt.messages))]


def _schemas(
    body: Mapping[str, Any], marks: Mapping[int, str], gaps: Sequence[str], skeleton: str, render: Render
) -> list[tuple[int, int]]:
    """Where in each gap there is text that only tools bring: some templates write it in two places."""
    bare = render({key: value for key, value in _marked(body, marks).items() if key != "tools"})
    if all(mark in bare for mark in marks.values()):
        return [_difference(gap, plain) for gap, plain in zip(gaps, _split(bare, list(marks.values())), strict=True)]
    start, end = _difference(skeleton, bare)
    found: list[tuple[int, int]] = []
    at = 0
    for gap, mark in zip(gaps, [*marks.values(), ""], strict=True):
        found.append((min(max(start - at, 0), len(gap)), min(max(end - at, 0), len(gap))))
        at += len(gap) + len(mark)
    return found


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
    """How many characters two texts have in common at their start: halving, since comparing slices is quick."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
