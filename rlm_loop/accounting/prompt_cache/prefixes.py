"""The tree of the prefixes that a cache holds, and how much of a request is found in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rlm_loop.accounting.attribution import Part
from rlm_loop.accounting.prompt_cache.requests import Key, Sent
from rlm_loop.accounting.prompt_cache.rules import Rules

#: How many of the requests that end at the same place are compared for a hit inside a message: the latest ones.
COMPARED = 200


@dataclass
class CachedPrefix:
    """A node of the tree of prefixes: what may come next, and when it was last used."""

    then: dict[Key, CachedPrefix] = field(default_factory=dict["Key", "CachedPrefix"])
    begun: dict[Key, float] = field(default_factory=dict["Key", float])
    """Messages that were begun here, not ended: a reply, or the marker that asks for one."""
    used: float = 0.0


def store(root: CachedPrefix, sent: Sent, rules: Rules) -> None:
    place, root.used = root, sent.at
    for key in sent.keys:
        place = place.then.setdefault(key, CachedPrefix())
        place.used = sent.at
    place.begun[sent.reply if rules.keeps_replies else ("assistant", "", "[]")] = sent.at


def found(root: CachedPrefix, sent: Sent, rules: Rules) -> int:
    """Tokens of the longest prefix that is held."""

    def held(used: float) -> bool:
        return rules.seconds is None or sent.at - used <= rules.seconds

    place, whole = root, 0
    if not place.then or not held(place.used):
        return 0
    while whole < len(sent.keys) and (then := place.then.get(sent.keys[whole])) is not None and held(then.used):
        place, whole = then, whole + 1
    tokens = through(sent.parts, whole)
    if whole == len(sent.keys):
        return sent.tokens if place.begun else tokens
    if rules.whole_messages:
        return tokens
    others = [(k, False) for k, p in list(place.then.items())[-COMPARED:] if held(p.used)]
    others += [(k, True) for k, used in list(place.begun.items())[-COMPARED:] if held(used)]
    return tokens + max((within(sent, whole, key, open_) for key, open_ in others), default=0)


def through(parts: Sequence[Part], whole: int) -> int:
    """Tokens of the tools and of so many whole messages."""
    return sum(p.tokens for p in parts if p.message < whole)


def within(sent: Sent, index: int, other: Key, begun: bool) -> int:
    """Tokens at the start of a message that it shares with another one."""
    role, text, calls = sent.keys[index]
    if role != other[0]:
        return 0
    own = [p for p in sent.parts if p.message == index]
    head = next((i for i, p in enumerate(own) if p.cause != "template"), len(own))
    tail = next((i for i in range(len(own), head, -1) if own[i - 1].cause != "template"), head)
    inside = sum(p.tokens for p in own[head:tail])
    if text == other[1] and (calls == other[2] or not begun):
        shared = inside if calls == other[2] else 0
    else:
        shared = inside * shared_start(text, other[1]) // max(1, len(text))
    return sum(p.tokens for p in own[:head]) + shared


def shared_start(left: str, right: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
