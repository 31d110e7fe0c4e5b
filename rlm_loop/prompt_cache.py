"""A prompt cache, simulated: which part of each request of a recorded run a provider would have had in its cache.

A cache holds prefixes of earlier requests, tools first, then message by message.  Under a provider's `Rules` the
longest prefix that is still held is the hit.  Where a caller's request does not begin with its request before, the
cache is broken there: `Break` names the cause of the text that stands at that place.

Whole messages are exact.  Within the first message that differs the tokens are shared by characters, so a hit that
ends inside a message may be off by a token or two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rlm_loop.attribution import Part
from rlm_loop.charges import accounts_of
from rlm_loop.messages import Message, Prompt, Reply, digest
from rlm_loop.trace_reader import RunRecord, read

if TYPE_CHECKING:
    import pandas as pd

#: How many of the requests that end at the same place are compared for a hit inside a message: the latest ones.
_COMPARED = 200


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
class Break:
    """A request that did not begin with its caller's request before.

    `message` is the index of the first message that differs (-1: the tools), `cause` the cause of the text there, `why`
    whether it was `changed` or earlier messages were `left_out`, `lost` how many tokens of the request before could
    not be found any more.
    """

    call: int
    turn: int
    message: int
    cause: str
    why: Literal["changed", "left_out"]
    lost: int


@dataclass(frozen=True)
class Read:
    """One request: its prompt tokens, how many of them would have been a hit, how many would have been written to the
    cache, and how many the provider reported as cached (`None`: it did not say)."""

    call: int
    turn: int
    depth: int
    node: str
    model: str
    tokens: int
    hit: int
    written: int
    reported: int | None


@dataclass(frozen=True)
class CacheReport:
    """What the cache would have done for a run."""

    rules: Rules
    reads: tuple[Read, ...]
    breaks: tuple[Break, ...]

    @property
    def tokens(self) -> int:
        return sum(r.tokens for r in self.reads)

    @property
    def hit(self) -> int:
        return sum(r.hit for r in self.reads)

    def broken_by(self) -> dict[str, int]:
        """Tokens lost by cause, most first."""
        lost: dict[str, int] = {}
        for found in self.breaks:
            name = found.cause if found.why == "changed" else "history left out"
            lost[name] = lost.get(name, 0) + found.lost
        return dict(sorted(lost.items(), key=lambda item: -item[1]))

    def frame(self) -> pd.DataFrame:
        """One row a request."""
        import pandas as pd

        frame = pd.DataFrame([asdict(r) for r in self.reads], columns=[f.name for f in fields(Read)])
        return frame.astype({"reported": "Int64"})

    def __str__(self) -> str:
        share = f" ({self.hit / self.tokens:.0%})" if self.tokens else ""
        lines = [f"{self.rules.name}: {self.hit:,} of {self.tokens:,} prompt tokens from the cache{share}"]
        lines += [f"  broken by {cause}: {lost:,} tokens lost" for cause, lost in self.broken_by().items()]
        return "\n".join(lines)


def simulate(trace: str | Path | RunRecord, rules: str | Rules, *, run: int = -1) -> CacheReport:
    """Play a recorded run against a cache.  `rules` is a name of `RULES` or rules of one's own.

    Calls overlap as they did: a prefix is held from the reply on.  Calls of unknown length are left out.  Raises
    `TraceError` for a bad file, `ValueError` for an unknown name.
    """
    if isinstance(rules, str):
        if rules not in RULES:
            raise ValueError(f"no rules are called {rules!r}: use {', '.join(RULES)}, or Rules(...)")
        rules = RULES[rules]
    record = trace if isinstance(trace, RunRecord) else read(trace, run=run)
    caches: dict[str, _Place] = {}
    before: dict[str, _Sent] = {}
    reads: list[Read] = []
    breaks: list[Break] = []
    for sent, stored in _timeline(record):
        scope = sent.model if rules.shared else f"{sent.model} {sent.node}"
        root = caches.setdefault(f"{scope} {sent.tools}", _Place())
        if stored:
            _store(root, sent, rules)
            continue
        hit = rules.floor(_found(root, sent, rules), sent.tokens)
        written = 0 if sent.tokens < rules.minimum else sent.tokens - hit
        who = (sent.call, sent.turn, sent.depth, sent.node, sent.model)
        reads.append(Read(*who, sent.tokens, hit, written, sent.reported))
        if (earlier := before.get(sent.node)) is not None and (found := _broken(earlier, sent)) is not None:
            breaks.append(found)
        before[sent.node] = sent
    return CacheReport(rules, tuple(sorted(reads, key=lambda r: r.call)), tuple(breaks))


_Key = tuple[str, str, str]  # role, text, and calls


@dataclass(frozen=True)
class _Sent:
    call: int
    turn: int
    depth: int
    node: str
    model: str
    tools: str
    messages: tuple[Message, ...]
    keys: tuple[_Key, ...]
    parts: Sequence[Part]
    tokens: int
    reported: int | None
    reply: _Key
    at: float


@dataclass
class _Place:
    """A node of the tree of prefixes: what may come next, and when it was last used."""

    then: dict[_Key, _Place] = field(default_factory=dict["_Key", "_Place"])
    begun: dict[_Key, float] = field(default_factory=dict["_Key", float])
    """Messages that were begun here, not ended: a reply, or the marker that asks for one."""
    used: float = 0.0


def _timeline(record: RunRecord) -> Iterator[tuple[_Sent, bool]]:
    """Each call twice, in the order of the run: when it was sent, and when its reply was there."""
    places = {id(event): i for i, event in enumerate(record.events)}
    asked: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for event in record.of("request"):
        asked.setdefault((event["digest"], event.get("node", "0")), []).append(event)
    lines: list[tuple[int, _Sent, bool]] = []
    for event, prompt, reply, found in accounts_of(record):
        waiting = asked.get((event["request"], event.get("node", "0")))
        request = waiting.pop(0) if waiting else event
        if found.usage.input_tokens is None:
            continue
        sent = _sent(event, request, prompt, reply, found.parts, found.usage.input_tokens, found.usage.cached_tokens)
        lines += [(places[id(request)], sent, False), (places[id(event)], sent, True)]
    return ((sent, stored) for _, sent, stored in sorted(lines, key=lambda line: (line[0], line[2])))


def _sent(
    event: Mapping[str, Any],
    request: Mapping[str, Any],
    prompt: Prompt,
    reply: Reply,
    parts: Sequence[Part],
    tokens: int,
    reported: int | None,
) -> _Sent:
    who = (event["charged"]["call"], event["turn"], event["depth"], event.get("node", "0"))
    tools = digest([dict(tool) for tool in prompt.tools])
    keys = tuple(_key(m) for m in prompt.messages)
    said = ("assistant", reply.text, repr([(c.name, c.arguments) for c in reply.tool_calls]))
    where = (str(request.get("model", "")), tools, prompt.messages, keys, parts)
    return _Sent(*who, *where, tokens, reported, said, float(request["at"]))


def _key(message: Message) -> _Key:
    return (message.role, message.text, repr([(c.name, c.arguments) for c in message.tool_calls]))


def _store(root: _Place, sent: _Sent, rules: Rules) -> None:
    place, root.used = root, sent.at
    for key in sent.keys:
        place = place.then.setdefault(key, _Place())
        place.used = sent.at
    place.begun[sent.reply if rules.keeps_replies else ("assistant", "", "[]")] = sent.at


def _found(root: _Place, sent: _Sent, rules: Rules) -> int:
    """Tokens of the longest prefix that is held."""

    def held(used: float) -> bool:
        return rules.seconds is None or sent.at - used <= rules.seconds

    place, whole = root, 0
    if not place.then or not held(place.used):
        return 0
    while whole < len(sent.keys) and (then := place.then.get(sent.keys[whole])) is not None and held(then.used):
        place, whole = then, whole + 1
    tokens = _through(sent.parts, whole)
    if whole == len(sent.keys):
        return sent.tokens if place.begun else tokens
    if rules.whole_messages:
        return tokens
    others = [(k, False) for k, p in list(place.then.items())[-_COMPARED:] if held(p.used)]
    others += [(k, True) for k, used in list(place.begun.items())[-_COMPARED:] if held(used)]
    return tokens + max((_within(sent, whole, key, open_) for key, open_ in others), default=0)


def _through(parts: Sequence[Part], whole: int) -> int:
    """Tokens of the tools and of so many whole messages."""
    return sum(p.tokens for p in parts if p.message < whole)


def _within(sent: _Sent, index: int, other: _Key, begun: bool) -> int:
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
        shared = inside * _shared(text, other[1]) // max(1, len(text))
    return sum(p.tokens for p in own[:head]) + shared


def _shared(left: str, right: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def _broken(earlier: _Sent, now: _Sent) -> Break | None:
    who = (now.call, now.turn)
    if earlier.tools != now.tools:
        return Break(*who, -1, "tool_schema", "changed", earlier.tokens)
    same = 0
    for old, new in zip(earlier.keys, now.keys, strict=False):
        if old != new:
            break
        same += 1
    if same == len(earlier.keys):
        return None
    old = earlier.messages[same]
    new = now.messages[same] if same < len(now.messages) else None
    lost = earlier.tokens - _through(earlier.parts, same)
    if new is None or now.keys[same] in earlier.keys[same:]:
        return Break(*who, same, _cause_at(old, 0), "left_out", lost)
    at = _shared(new.text, old.text)
    found = _cause_at(new, at) if at < len(new.text) else _cause_at(old, at)
    return Break(*who, same, found, "changed", lost - _within(now, same, earlier.keys[same], False))


def _cause_at(message: Message, at: int) -> str:
    """The cause of the text at a character; of the last text where there is none."""
    for span in message.spans:
        if at < len(span.text):
            return span.cause
        at -= len(span.text)
    return message.spans[-1].cause if message.spans else message.role
