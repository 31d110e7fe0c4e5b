"""Requests of a recorded run in the order in which a prompt cache saw them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

from breaks import SHOWN, Break, cause_at, of_template

from rlm_loop.accounting.attribution import Part, tool_name
from rlm_loop.accounting.charges import accounts_of
from rlm_loop.accounting.tree import shortened
from rlm_loop.messages import Prompt, ToolCall, common, digest
from rlm_loop.traces import RunRecord

Key = tuple[str, str, str]  # role, text, and calls


@dataclass(frozen=True)
class Sent:
    """A request, what its tokens are, and the reply that it got."""

    call: int
    turn: int
    depth: int
    node: str
    model: str
    at: float
    prompt: Prompt
    parts: Sequence[Part]
    tokens: int
    reported: int | None
    reply: Key

    @cached_property
    def tools(self) -> str:
        return digest([dict(tool) for tool in self.prompt.tools])

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        return tuple(key_of(m.role, m.text, m.tool_calls) for m in self.prompt.messages)

    def through(self, whole: int) -> int:
        """Tokens of the tools and of so many whole messages."""
        return sum(p.tokens for p in self.parts if p.message < whole)

    def within(self, index: int, other: Key, begun: bool) -> int:
        """Tokens at the start of a message that it shares with another one, which may be begun only."""
        role, text, calls = self.keys[index]
        if role != other[0]:
            return 0
        own = [p for p in self.parts if p.message == index]
        head = sum(1 for _ in takewhile(of_template, own))
        tail = len(own) - sum(1 for _ in takewhile(of_template, reversed(own[head:])))
        inside = sum(p.tokens for p in own[head:tail])
        if text == other[1] and (calls == other[2] or not begun):
            shared = inside if calls == other[2] else 0
        else:
            shared = inside * common(text, other[1]) // max(1, len(text))
        return sum(p.tokens for p in own[:head]) + shared


def timeline(record: RunRecord) -> Iterator[tuple[Sent, bool]]:
    """Each call twice, in the order of the run: when it was sent, and when its reply was there."""
    places = {id(event): i for i, event in enumerate(record.events)}
    asked: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for event in record.of("request"):
        asked.setdefault((event["digest"], event.get("node", "0")), []).append(event)
    lines: list[tuple[int, bool, Sent]] = []
    for event, prompt, reply, found in accounts_of(record):
        waiting = asked.get((event["request"], event.get("node", "0")))
        request = waiting.pop(0) if waiting else event
        tokens, reported = found.usage.input_tokens, found.usage.cache_read_tokens
        if tokens is None:
            continue
        who = (event["charged"]["call"], event["turn"], event["depth"], event.get("node", "0"))
        said = key_of("assistant", reply.text, reply.tool_calls)
        when = (str(request.get("model", "")), float(request["at"]))
        sent = Sent(*who, *when, prompt, found.parts, tokens, reported, said)
        lines += [(places[id(request)], False, sent), (places[id(event)], True, sent)]
    return ((sent, stored) for _, stored, sent in sorted(lines, key=lambda line: line[:2]))


def key_of(role: str, text: str, calls: Sequence[ToolCall]) -> Key:
    """Return a message's text for comparison."""
    return role, text, repr([(c.name, c.arguments) for c in calls])


def broken(earlier: Sent, now: Sent) -> Break | None:
    """Return the break of a request that did not go on from its caller's request before, or `None`."""
    who = (now.call, now.turn)
    if earlier.tools != now.tools:
        names = ({tool_name(tool) for tool in sent.prompt.tools} for sent in (earlier, now))
        other = sorted(set.symmetric_difference(*names)) or ["a schema, or the order"]
        return Break(*who, -1, "tool_schema", "changed", earlier.tokens, shortened(", ".join(other), SHOWN), now.node)
    same = common(earlier.keys, now.keys)
    if same == len(earlier.keys):
        return None
    old = earlier.prompt.messages[same]
    lost = earlier.tokens - earlier.through(same)
    if same == len(now.keys) or now.keys[same] in earlier.keys[same:]:
        return Break(*who, same, cause_at(old, 0), "left_out", lost, shortened(old.text, SHOWN), now.node)
    new = now.prompt.messages[same]
    at = common(new.text, old.text)
    found = cause_at(new, at) if at < len(new.text) else cause_at(old, at)
    lost = max(0, lost - now.within(same, earlier.keys[same], False))  # shares by characters may come out above it
    return Break(*who, same, found, "changed", lost, shortened(new.text[at:] or old.text[at:], SHOWN), now.node)
