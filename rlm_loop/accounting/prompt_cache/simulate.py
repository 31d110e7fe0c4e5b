"""Playing a recorded run against a prompt cache: the tree of the prefixes that it holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rlm_loop.accounting.prompt_cache.report import Break, CacheReport, Read
from rlm_loop.accounting.prompt_cache.requests import Key, Sent, broken, timeline
from rlm_loop.accounting.prompt_cache.rules import RULES, Rules
from rlm_loop.traces.reader import RunRecord, read
from rlm_loop.traces.runs import Run

#: How many of the requests that end at the same place are compared for a hit inside a message: the latest ones.
COMPARED = 200


def simulate(trace: str | Path | RunRecord, rules: str | Rules, *, run: Run = None) -> CacheReport:
    """Play a recorded run against a cache.  `rules` is a name of `RULES` or rules of one's own.

    Calls overlap as they did: a prefix is held from the reply on.  Calls of unknown length are left out.  Raises
    `TraceError` for a bad file, `ValueError` for an unknown name.
    """
    if isinstance(rules, str):
        if rules not in RULES:
            raise ValueError(f"no rules are called {rules!r}: use {', '.join(RULES)}, or Rules(...)")
        rules = RULES[rules]
    record = trace if isinstance(trace, RunRecord) else read(trace, run=run)
    caches: dict[str, CachedPrefix] = {}
    before: dict[str, Sent] = {}
    reads: list[Read] = []
    breaks: list[Break] = []
    for sent, stored in timeline(record):
        scope = sent.model if rules.shared else f"{sent.model} {sent.node}"
        root = caches.setdefault(f"{scope} {sent.tools}", CachedPrefix())
        if stored:
            root.store(sent, rules)
            continue
        hit = rules.floor(root.found(sent, rules), sent.tokens)
        written = 0 if sent.tokens < rules.minimum else sent.tokens - hit
        who = (sent.call, sent.turn, sent.depth, sent.node, sent.model)
        reads.append(Read(*who, sent.tokens, hit, written, sent.reported))
        if (earlier := before.get(sent.node)) is not None and (broke := broken(earlier, sent)) is not None:
            breaks.append(broke)
        before[sent.node] = sent
    return CacheReport(rules, tuple(sorted(reads, key=lambda r: r.call)), tuple(breaks))


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
