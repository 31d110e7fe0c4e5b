"""A run as a page needs it: events by node, turns, texts, tree and tokens, each as far as the trace can be read."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rlm_loop.accounting.charges import accounts_of
from rlm_loop.accounting.tree import ROOT, Node, TraceTree, node_of, tree_of
from rlm_loop.agents.past_run import turns_of
from rlm_loop.messages import Reply, Usage
from rlm_loop.outcome import Turn
from rlm_loop.report.run.reading import UNREADABLE, RunInFile, mapping
from rlm_loop.traces.reader import RunRecord, reply_of

Event = Mapping[str, Any]
#: Events that a reader sees in the flow of a node.
_TOLD = {"turn", "compaction", "model_error", "attempt_start", "attempt_end", "reply"}


@dataclass(frozen=True)
class Prefix:
    """The prefix of a run's ids on a page; empty where the page shows one run."""

    text: str = ""

    def step(self, node: str, turn: int, main: bool) -> str:
        return f"{self.text}t{turn}" if main else f"{self.text}n{node}.t{turn}"

    def node(self, node: str) -> str:
        return f"{self.text}n{node}"


@dataclass(frozen=True)
class RunView:
    """A run.  `number` is its place in the file."""

    found: RunInFile
    number: int
    prefix: Prefix = field(default_factory=Prefix)
    limit: int = 20_000
    """Characters of one text that are shown."""

    @property
    def record(self) -> RunRecord:
        return self.found.record

    @property
    def start(self) -> Event:
        return self.record.start

    @cached_property
    def end(self) -> Event | None:
        return self.record.end

    @property
    def stop(self) -> str:
        """The reason of the run's end, in one word; `unfinished` where the trace has no end."""
        return "unfinished" if self.end is None else str(self.end.get("stop", "?"))

    @cached_property
    def spent(self) -> tuple[Spent, ...]:
        return tuple(spent_of(self.record))

    @cached_property
    def usage(self) -> Usage:
        return sum((s.usage for s in self.spent), Usage.NOTHING)

    @cached_property
    def spent_in(self) -> Mapping[tuple[str, int], tuple[Spent, ...]]:
        """The calls of a turn of a node."""
        found: dict[tuple[str, int], tuple[Spent, ...]] = {}
        for one in self.spent:
            found[one.node, one.turn] = (*found.get((one.node, one.turn), ()), one)
        return found

    def causes_in(self, node: str, turn: int) -> dict[str, int]:
        """The input tokens of the calls of a turn, by cause."""
        sums: dict[str, int] = {}
        for one in self.spent_in.get((node, turn), ()):
            for cause, tokens in one.causes.items():
                sums[cause] = sums.get(cause, 0) + tokens
        return sums

    @cached_property
    def tree(self) -> TraceTree:
        return tree_of(self.record, skip=UNREADABLE)

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Texts by their hash; what cannot be read is missing."""
        try:
            return self.record.texts
        except UNREADABLE:
            return {str(e.get("sha256")): str(e.get("text", "")) for e in self.record.of("text")}

    @cached_property
    def bodies(self) -> Mapping[str, Event]:
        """Messages by their hash, as they are stored."""
        return {str(e.get("hash")): e["message"] for e in self.record.of("message")}

    @cached_property
    def settings(self) -> Mapping[str, Event]:
        return {str(e.get("hash")): e for e in self.record.of("settings")}

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The node of each event."""
        return tuple(map(node_of, self.record.events))

    @cached_property
    def by_node(self) -> Mapping[str, tuple[Event, ...]]:
        """The events of each node in order; those of attempts at the whole (at depth 0) are the root's."""
        found: dict[str, list[Event]] = {}
        for path, event in zip(self.paths, self.record.events, strict=True):
            found.setdefault(path if event.get("depth") else ROOT, []).append(event)
        return {path: tuple(events) for path, events in found.items()}

    @cached_property
    def requests(self) -> Mapping[tuple[str, int], Event]:
        """The first request of each turn of each node, those for summaries left out."""
        found: dict[tuple[str, int], Event] = {}
        for path, event in zip(self.paths, self.record.events, strict=True):
            if event["event"] == "request" and event.get("purpose") != "compaction":
                found.setdefault((path, event.get("turn") or 0), event)
        return found

    @cached_property
    def first_requests(self) -> Mapping[str, Event]:
        """The first request of each node, in order."""
        found: dict[str, Event] = {}
        for (node, _), event in self.requests.items():
            found.setdefault(node, event)
        return found

    @cached_property
    def trees(self) -> Mapping[tuple[str, int], Event]:
        """The last state of the workspace that each turn left."""
        return {(str(e.get("node", ROOT)), e.get("turn") or 0): e for e in self.record.of("tree")}

    @cached_property
    def asked(self) -> Mapping[str, str]:
        """Return what each sub-call was asked, where the trace holds it."""
        found = {
            str(e.get("node")): self.texts[key]
            for e in self.record.of("subcall_start")
            if (key := str(e.get("prompt_sha256"))) in self.texts
        }
        for node, request in self.first_requests.items():
            if node not in found and node not in self.attempts:
                bodies = (self.bodies.get(str(key)) or {} for key in request.get("added") or ())
                said = [text for body in bodies if body.get("role") == "user" for text, _ in spans_of(body)]
                found[node] = "".join(said)
        return found

    @cached_property
    def asked_in(self) -> Mapping[tuple[str, int], tuple[Node, ...]]:
        """The sub-calls that each turn of a node started.  Attempts are not among them: they are steps of the flow."""
        found: dict[tuple[str, int], tuple[Node, ...]] = {}
        for node in self.tree.nodes:
            if node.parent is not None and node.node not in self.attempts:
                key = node.parent, node.turn if isinstance(node.turn, int) else 0
                found[key] = (*found.get(key, ()), node)
        return found

    @cached_property
    def attempts(self) -> frozenset[str]:
        return frozenset(str(e.get("node")) for e in self.record.of("attempt_start"))

    @cached_property
    def answers(self) -> Mapping[str, str]:
        """The last reply's text of each node."""
        found: dict[str, str] = {}
        for path, event in zip(self.paths, self.record.events, strict=True):
            if event["event"] == "reply":
                found[path] = str(mapping(event.get("reply")).get("text", ""))
        return found

    def flow(self, node: str) -> Iterator[tuple[str, Event, Turn | None]]:
        """Return what happened in a node, in order: (kind, event, turn).  A `reply` is of an unfinished turn.

        A turn that cannot be read has `None` in place of its value.
        """
        events = self.by_node.get(node, ())
        done = {(e.get("node"), e.get("turn")) for e in events if e["event"] == "turn"}
        waiting: dict[tuple[Any, Any], Event] = {}
        for event in events:
            kind, key = event["event"], (event.get("node"), event.get("turn"))
            if kind == "reply":
                if mapping(event.get("charged")).get("purpose") == "compaction":
                    continue
                waiting[key] = event
                if key in done or not event.get("turn"):
                    continue
            if kind == "turn":
                yield kind, event, turn_of(event, waiting.get(key))
            elif kind == "reply":
                yield kind, event, unfinished_of(event)
            elif kind in _TOLD:
                yield kind, event, None


def spans_of(message: Event | None) -> Iterator[tuple[str, str]]:
    """The spans of a stored message: (text, cause)."""
    for span in (message or {}).get("spans") or ():
        if known := mapping(span):
            yield str(known.get("text", "")), str(known.get("cause", "?"))


def turn_of(event: Event, reply: Event | None) -> Turn | None:
    """A turn with its reply; `None` where its event has a form that is not known."""
    same = {"depth": 0, "turn": event.get("turn")}
    for pair in ([reply, event] if reply else [event]), [event]:  # a reply that cannot be read must not hide the turn
        try:
            found = turns_of(RunRecord(tuple({**e, **same} for e in pair)))
            if found and isinstance(found[0].index, int):
                return found[0]
        except UNREADABLE:
            continue
    return None


def unfinished_of(event: Event) -> Turn | None:
    """A turn without actions, for a reply whose turn the trace does not hold."""
    try:
        return Turn(int(event.get("turn", 0)), reply_of(event["reply"]), (), ())
    except UNREADABLE:
        return Turn(int(event.get("turn") or 0), Reply(str(event.get("reply"))), (), ())


#: Input whose cause cannot be told, because the trace lacks what it takes.
UNKNOWN = "not attributed"


@dataclass(frozen=True)
class Spent:
    """A model call: who made it in which turn, its usage, and its input tokens by cause.

    `exact` is whether the causes were counted by the model's own tokenizer rather than shared out by length.
    """

    node: str
    turn: int
    usage: Usage
    causes: Mapping[str, int]
    exact: bool


def spent_of(record: RunRecord) -> Iterator[Spent]:
    """Every call of a run that got a reply, in order; sub-calls included.

    From the first call that cannot be read on, tokens of the input have the cause `UNKNOWN`.
    """
    accounts: dict[int, tuple[Mapping[str, int], bool]] = {}
    with contextlib.suppress(*UNREADABLE):
        for event, _, _, account in accounts_of(record):
            sums: Counter[str] = Counter()
            for part in account.parts:
                sums[str(part.cause)] += part.tokens
            accounts[id(event)] = +sums, bool(event["charged"]["exact"])
    for event in record.of("reply"):
        try:
            usage = reply_of(event["reply"]).usage or Usage(None, None)
        except UNREADABLE:
            usage = Usage(None, None)
        unknown = {UNKNOWN: usage.input_tokens} if usage.input_tokens else {}
        yield Spent(node_of(event), int(event.get("turn") or 0), usage, *accounts.get(id(event), (unknown, False)))
