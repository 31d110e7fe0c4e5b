"""Requests that do not begin with their conversation's request before, so that no prompt cache finds what follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from rlm_loop.accounting.attribution import Part, tool_name
from rlm_loop.accounting.charges import accounts_of
from rlm_loop.accounting.tree import shortened
from rlm_loop.messages import Message, Prompt, common, digest
from rlm_loop.traces.reader import RunRecord

#: Characters of a text that are shown.
SHOWN = 80


@dataclass(frozen=True)
class Break:
    """A request that did not begin with its caller's request before.

    `message` is the index of the first message that differs (-1: the tools), `cause` the cause of the text there, `why`
    whether it was `changed` or earlier messages were `left_out`, `lost` how many tokens of the request before could
    not be found any more, `text` how the text begins that stands there now (of tools: those that came or went).
    """

    call: int
    turn: int
    message: int
    cause: str
    why: Literal["changed", "left_out"]
    lost: int
    text: str = ""
    node: str = "0"


@dataclass(frozen=True)
class _Sent:
    """A request, what its tokens are, and what its messages say."""

    prompt: Prompt
    parts: Sequence[Part]
    tokens: int

    @property
    def tools(self) -> str:
        return digest([dict(tool) for tool in self.prompt.tools])

    @property
    def keys(self) -> list[tuple[str, str, str]]:
        calls = [repr([(c.name, c.arguments) for c in m.tool_calls]) for m in self.prompt.messages]
        return [(m.role, m.text, called) for m, called in zip(self.prompt.messages, calls, strict=True)]


def breaks_of(record: RunRecord) -> tuple[Break, ...]:
    """Return the requests of a run that did not begin as their caller's request before."""
    before: dict[str, _Sent] = {}
    breaks: list[Break] = []
    for event, prompt, _reply, account in accounts_of(record):
        if account.usage.input_tokens is None:
            continue
        node, sent = event.get("node", "0"), _Sent(prompt, account.parts, account.usage.input_tokens)
        if (earlier := before.get(node)) is not None and (place := _broken(earlier, sent)) is not None:
            message, cause, why, lost, text = place
            who = event["charged"]["call"], event["turn"]
            breaks.append(Break(*who, message, cause, why, lost, shortened(text, SHOWN), node))
        before[node] = sent
    return tuple(breaks)


def _broken(earlier: _Sent, now: _Sent) -> tuple[int, str, Literal["changed", "left_out"], int, str] | None:
    """Return message, cause, why, lost tokens and text where a request did not go on from the one before."""
    if earlier.tools != now.tools:
        names = ({tool_name(tool) for tool in sent.prompt.tools} for sent in (earlier, now))
        other = sorted(set.symmetric_difference(*names)) or ["a schema, or the order"]
        return -1, "tool_schema", "changed", earlier.tokens, ", ".join(other)
    old_keys, new_keys = earlier.keys, now.keys
    same = common(old_keys, new_keys)
    if same == len(old_keys):
        return None
    old = earlier.prompt.messages[same]
    lost = earlier.tokens - sum(part.tokens for part in earlier.parts if part.message < same)
    if same == len(new_keys) or new_keys[same] in old_keys[same:]:
        return same, cause_at(old, 0), "left_out", lost, old.text
    new = now.prompt.messages[same]
    at = common(new.text, old.text)
    cause = cause_at(new, at) if at < len(new.text) else cause_at(old, at)
    if new.role == old.role:  # shares by characters may come out above it
        lost = max(
            0,
            lost
            - _shared(new, at if new.text != old.text else 0, [part for part in now.parts if part.message == same]),
        )
    return same, cause, "changed", lost, new.text[at:] or old.text[at:]


def _shared(message: Message, characters: int, parts: Sequence[Part]) -> int:
    """Return the tokens of a message's start: the template's before its text, and a share of those inside."""
    head = sum(1 for _ in takewhile(of_template, parts))
    tail = len(parts) - sum(1 for _ in takewhile(of_template, reversed(parts[head:])))
    inside = sum(part.tokens for part in parts[head:tail])
    return sum(part.tokens for part in parts[:head]) + inside * characters // max(1, len(message.text))


def of_template(part: Part) -> bool:
    return part.cause == "template"


def cause_at(message: Message, at: int) -> str:
    """Return the cause of the text at a character; of the last text where there is none."""
    for span in message.spans:
        if at < len(span.text):
            return span.cause
        at -= len(span.text)
    return message.spans[-1].cause if message.spans else message.role
