"""Playing a recorded run against a prompt cache."""

from __future__ import annotations

from pathlib import Path

from rlm_loop.accounting.prompt_cache.breaks import broken
from rlm_loop.accounting.prompt_cache.prefixes import CachedPrefix, found, store
from rlm_loop.accounting.prompt_cache.report import Break, CacheReport, Read
from rlm_loop.accounting.prompt_cache.requests import Sent, timeline
from rlm_loop.accounting.prompt_cache.rules import RULES, Rules
from rlm_loop.traces.reader import RunRecord, read
from rlm_loop.traces.runs import Run


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
            store(root, sent, rules)
            continue
        hit = rules.floor(found(root, sent, rules), sent.tokens)
        written = 0 if sent.tokens < rules.minimum else sent.tokens - hit
        who = (sent.call, sent.turn, sent.depth, sent.node, sent.model)
        reads.append(Read(*who, sent.tokens, hit, written, sent.reported))
        if (earlier := before.get(sent.node)) is not None and (broke := broken(earlier, sent)) is not None:
            breaks.append(broke)
        before[sent.node] = sent
    return CacheReport(rules, tuple(sorted(reads, key=lambda r: r.call)), tuple(breaks))
