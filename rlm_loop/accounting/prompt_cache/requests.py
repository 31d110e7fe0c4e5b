"""The requests of a recorded run, in the order in which a cache met them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_loop.accounting.attribution import Part, tool_name
from rlm_loop.accounting.charges import accounts_of
from rlm_loop.messages import Message, Prompt, Reply, digest
from rlm_loop.traces.reader import RunRecord

Key = tuple[str, str, str]  # role, text, and calls


@dataclass(frozen=True)
class Sent:
    call: int
    turn: int
    depth: int
    node: str
    model: str
    tools: str
    names: tuple[str, ...]
    messages: tuple[Message, ...]
    keys: tuple[Key, ...]
    parts: Sequence[Part]
    tokens: int
    reported: int | None
    reply: Key
    at: float


def timeline(record: RunRecord) -> Iterator[tuple[Sent, bool]]:
    """Each call twice, in the order of the run: when it was sent, and when its reply was there."""
    places = {id(event): i for i, event in enumerate(record.events)}
    asked: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for event in record.of("request"):
        asked.setdefault((event["digest"], event.get("node", "0")), []).append(event)
    lines: list[tuple[int, Sent, bool]] = []
    for event, prompt, reply, found in accounts_of(record):
        waiting = asked.get((event["request"], event.get("node", "0")))
        request = waiting.pop(0) if waiting else event
        if found.usage.input_tokens is None:
            continue
        sent = sent_of(
            event, request, prompt, reply, found.parts, found.usage.input_tokens, found.usage.cache_read_tokens
        )
        lines += [(places[id(request)], sent, False), (places[id(event)], sent, True)]
    return ((sent, stored) for _, sent, stored in sorted(lines, key=lambda line: (line[0], line[2])))


def sent_of(
    event: Mapping[str, Any],
    request: Mapping[str, Any],
    prompt: Prompt,
    reply: Reply,
    parts: Sequence[Part],
    tokens: int,
    reported: int | None,
) -> Sent:
    who = (event["charged"]["call"], event["turn"], event["depth"], event.get("node", "0"))
    tools = digest([dict(tool) for tool in prompt.tools])
    keys = tuple(key_of(m) for m in prompt.messages)
    said = ("assistant", reply.text, repr([(c.name, c.arguments) for c in reply.tool_calls]))
    names = tuple(map(tool_name, prompt.tools))
    where = (str(request.get("model", "")), tools, names, prompt.messages, keys, parts)
    return Sent(*who, *where, tokens, reported, said, float(request["at"]))


def key_of(message: Message) -> Key:
    return (message.role, message.text, repr([(c.name, c.arguments) for c in message.tool_calls]))
