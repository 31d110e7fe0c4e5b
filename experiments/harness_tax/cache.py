"""A prompt cache, simulated: which part of each request of a recorded run a provider would have had in its cache.

A cache holds prefixes of earlier requests, tools first, then message by message.  Under a provider's `Rules` the
longest prefix that is still held is the hit.  Whole messages are exact; within the first message that differs the
tokens are shared by characters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from requests_sent import Key, Sent, timeline

from rlm_loop.traces import RunRecord

#: How many of the requests that end at the same place are compared for a hit inside a message: the latest ones.
COMPARED = 200


@dataclass(frozen=True)
class Rules:
    """How a provider's cache works.

    `minimum`: shorter prefixes (tokens) are neither kept nor found.  `block`: a hit is a multiple of so many tokens.
    `whole_messages`: a hit ends where a message ends.  `keeps_replies`: the reply is held with its prompt.
    `anew`: so many tokens at the end are read anew in any case.  `seconds`: how long a prefix is held after its last
    use (`None`: for the whole run).  `shared`: all callers of a run that use the same model share one cache, as one
    organisation's do; otherwise each has its own.  `source` is where the rules are from.
    """

    name: str
    minimum: int = 0
    block: int = 1
    whole_messages: bool = False
    keeps_replies: bool = False
    anew: int = 0
    seconds: float | None = None
    shared: bool = True
    source: str = ""

    def floor(self, tokens: int, total: int) -> int:
        """What is left of a common prefix as a hit, in a request of `total` tokens."""
        found = min(tokens, total - self.anew) // self.block * self.block
        return found if found >= max(self.minimum, 1) else 0


#: Rules as the providers state them.  Minimum and lifetime differ from model to model: `dataclasses.replace` them.
RULES: Mapping[str, Rules] = {
    "openai": Rules(
        "openai",
        minimum=1024,
        block=128,
        seconds=600.0,
        source="https://platform.openai.com/docs/guides/prompt-caching: from 1,024 tokens in steps of 128, tools and "
        "messages, exact prefixes, within an organisation, held for 5 to 10 minutes after the last use",
    ),
    "anthropic": Rules(
        "anthropic",
        minimum=1024,
        whole_messages=True,
        seconds=300.0,
        source="https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching: tools, system, messages up to a "
        "breakpoint; 1,024 tokens (2,048 or 4,096 for some models); 5 minutes, renewed by use.  Taken as if each "
        "message ended in a breakpoint, which needs no more than the four allowed where requests only grow",
    ),
    "llama.cpp": Rules(
        "llama.cpp",
        keeps_replies=True,
        anew=1,
        source="llama.cpp server, cache_prompt with cache-ram: the longest prefix of any earlier request and its "
        "reply; the last token is always evaluated",
    ),
}


@dataclass(frozen=True)
class Read:
    """A request: its prompt tokens, how many of them are a hit, and how many are written to the cache."""

    call: int
    tokens: int
    hit: int
    written: int


def simulate(record: RunRecord, rules: Rules) -> list[Read]:
    """Play a recorded run against a cache.  Calls overlap as they did: a prefix is held from the reply on."""
    caches: dict[str, CachedPrefix] = {}
    reads: list[Read] = []
    for sent, stored in timeline(record):
        scope = sent.model if rules.shared else f"{sent.model} {sent.node}"
        root = caches.setdefault(f"{scope} {sent.tools}", CachedPrefix())
        if stored:
            root.store(sent, rules)
            continue
        hit = rules.floor(root.found(sent, rules), sent.tokens)
        written = 0 if sent.tokens < rules.minimum else sent.tokens - hit
        reads.append(Read(sent.call, sent.tokens, hit, written))
    return sorted(reads, key=lambda r: r.call)


@dataclass
class CachedPrefix:
    """A node of the tree of prefixes: what may come next, and when it was last used."""

    then: dict[Key, CachedPrefix] = field(default_factory=dict["Key", "CachedPrefix"])
    begun: dict[Key, float] = field(default_factory=dict["Key", float])
    """Messages that were begun here, not ended: a reply, or the marker that asks for one."""
    used: float = 0.0

    def store(self, sent: Sent, rules: Rules) -> None:
        place, self.used = self, sent.at
        for key in sent.keys:
            place = place.then.setdefault(key, CachedPrefix())
            place.used = sent.at
        place.begun[sent.reply if rules.keeps_replies else ("assistant", "", "[]")] = sent.at

    def found(self, sent: Sent, rules: Rules) -> int:
        """Tokens of the longest prefix that is held below this one."""

        def held(used: float) -> bool:
            return rules.seconds is None or sent.at - used <= rules.seconds

        place, whole = self, 0
        if not place.then or not held(place.used):
            return 0
        while whole < len(sent.keys) and (then := place.then.get(sent.keys[whole])) is not None and held(then.used):
            place, whole = then, whole + 1
        tokens = sent.through(whole)
        if whole == len(sent.keys):
            return sent.tokens if place.begun else tokens
        if rules.whole_messages:
            return tokens
        others = [(k, False) for k, p in list(place.then.items())[-COMPARED:] if held(p.used)]
        others += [(k, True) for k, used in list(place.begun.items())[-COMPARED:] if held(used)]
        return tokens + max((sent.within(whole, key, begun) for key, begun in others), default=0)
