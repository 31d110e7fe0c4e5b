"""A run as a page needs it: events by node, turns, texts, tree and tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from rlm_loop.accounting.charges import accounts_of
from rlm_loop.accounting.tree import ROOT, Node, TraceTree, node_of, tree_of
from rlm_loop.agents import past_run
from rlm_loop.messages import Reply, Usage
from rlm_loop.outcome import Turn
from rlm_loop.traces.reader import RunRecord, reply_of

Event = Mapping[str, Any]


def mapping(value: Any) -> Mapping[str, Any]:
    """A value that should be a JSON object; an empty one where it is something else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


@dataclass(frozen=True)
class RunView:
    """A run of a file."""

    record: RunRecord
    prefix: str = ""
    """The beginning of the run's ids on a page; empty where the page shows one run."""

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
    def turns(self) -> int:
        return sum(event["event"] == "turn" for event in self.by_node.get(ROOT, ()))

    @cached_property
    def spent(self) -> tuple[Spent, ...]:
        return tuple(spent_of(self.record))

    @cached_property
    def usage(self) -> Usage:
        return sum((s.usage for s in self.spent), Usage.NOTHING)

    @cached_property
    def spent_in(self) -> Mapping[tuple[str, int], list[Spent]]:
        """The calls of a turn of a node."""
        found: dict[tuple[str, int], list[Spent]] = {}
        for one in self.spent:
            found.setdefault((one.node, one.turn), []).append(one)
        return found

    @cached_property
    def tree(self) -> TraceTree:
        return tree_of(self.record)

    @cached_property
    def bodies(self) -> Mapping[str, Event]:
        """Messages by their hash, as they are stored."""
        return {e["hash"]: e["message"] for e in self.record.of("message")}

    @cached_property
    def settings(self) -> Mapping[str, Event]:
        return {e["hash"]: e for e in self.record.of("settings")}

    @cached_property
    def by_node(self) -> Mapping[str, list[Event]]:
        """The events of each node in order."""
        found: dict[str, list[Event]] = {}
        for event in self.record.events:
            found.setdefault(node_of(event) if event.get("depth") else ROOT, []).append(event)
        return found

    @cached_property
    def requests(self) -> Mapping[tuple[str, int], Event]:
        """The first request of each turn of each node, those for summaries left out."""
        found: dict[tuple[str, int], Event] = {}
        for event in self.record.of("request"):
            if event.get("purpose") != "compaction":
                found.setdefault((node_of(event), event.get("turn", 0)), event)
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
        return {(node_of(e), e.get("turn", 0)): e for e in self.record.of("tree")}

    @cached_property
    def asked(self) -> Mapping[str, str]:
        """Return what each sub-call was asked, where the trace holds it."""
        texts = self.record.texts
        begun = [(node_of(e), e.get("prompt_sha256", "")) for e in self.record.of("subcall_start")]
        found = {node: texts[key] for node, key in begun if key in texts}
        for node, request in self.first_requests.items():
            if node not in found:
                bodies = (self.bodies.get(key) for key in request["added"])
                said = [text for body in bodies if body and body["role"] == "user" for text, _ in spans_of(body)]
                found[node] = "".join(said)
        return found

    @cached_property
    def asked_in(self) -> Mapping[tuple[str, int], list[Node]]:
        """The sub-calls that each turn of a node started."""
        found: dict[tuple[str, int], list[Node]] = {}
        for node in self.tree.nodes:
            if node.parent is not None:
                found.setdefault((node.parent, node.turn or 0), []).append(node)
        return found

    @cached_property
    def answers(self) -> Mapping[str, str]:
        """The last reply's text of each node."""
        return {node_of(e): e["reply"]["text"] for e in self.record.of("reply")}

    def flow(self, node: str) -> Iterator[tuple[str, Event, Turn | None]]:
        """Return what happened in a node, in order: (kind, event, turn).  A `reply` is of an unfinished turn."""
        events = self.by_node.get(node, ())
        done = {(e.get("node"), e.get("turn")) for e in events if e["event"] == "turn"}
        waiting: dict[tuple[Any, Any], Reply] = {}
        for event in events:
            key = event.get("node"), event.get("turn")
            match event["event"]:
                case "reply" if event.get("charged", {}).get("purpose") != "compaction":
                    waiting[key] = reply_of(event["reply"])
                    if key not in done and event.get("turn"):
                        yield "reply", event, Turn(event["turn"], waiting[key], (), ())
                case "turn":
                    yield "turn", event, past_run.turn_of(event, waiting.get(key, Reply()))
                case "compaction" | "model_error" as kind:
                    yield kind, event, None
                case _:
                    pass


def spans_of(message: Event | None) -> list[tuple[str, str]]:
    """The spans of a stored message: (text, cause)."""
    return [(span["text"], span["cause"]) for span in (message or {}).get("spans", ())]


#: The name of what a model wrote, beside the causes of input.
OUTPUT = "output"


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
    """Every call of a run that got a reply, in order; sub-calls included."""
    for event, _, reply, account in accounts_of(record):
        sums: Counter[str] = Counter()
        for part in account.parts:
            sums[str(part.cause)] += part.tokens
        usage, exact = reply.usage or Usage(None, None), bool(event["charged"]["exact"])
        yield Spent(node_of(event), event["turn"], usage, +sums, exact)


def by_cause(calls: Iterable[Spent]) -> dict[str, int]:
    """The tokens of some calls by cause, and what was written."""
    sums: dict[str, int] = {}
    for one in calls:
        for cause, tokens in [*one.causes.items(), (OUTPUT, one.usage.output_tokens or 0)]:
            sums[cause] = sums.get(cause, 0) + tokens
    return sums
