"""A recorded run by the nodes of its call tree: what each agent and each sub-call asked, got, did and came to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rlm_loop.accounting.charges import restored
from rlm_loop.accounting.ledger import Part
from rlm_loop.accounting.tree import node_of
from rlm_loop.actions import Action, Observation
from rlm_loop.agents.past_run import action_of, observation_of
from rlm_loop.messages import Message, Prompt, Reply
from rlm_loop.repl.contexts.fingerprint import context_fingerprint
from rlm_loop.traces.reader import RunRecord, message_of, reply_of, whole


class ReplayError(ValueError):
    """A run cannot be replayed or forked; the message is one line that says what to give or do."""


class RecordEnds(BaseException):
    """The record has nothing more to drive the loop with.  No `Exception`, so that the loop does not take it for one
    of its own."""


ROOT = "0"
#: Events of which a node has one at most, by the field that holds it.
_KEPT_AS = {"subcall_end": "over", "run_end": "end", "problem": "problem"}


@dataclass
class RecordedCall:
    """A model call: the request, and the reply or the error that it got (neither: the record ends before it).

    `number` is that of the ledger, or, where it was never charged, its place among the requests; `parts` are its
    tokens as they were counted, `None` where they were not.
    """

    number: int
    event: Mapping[str, Any]
    prompt: Prompt
    reply: Reply | None = None
    error: str | None = None
    ended: Mapping[str, Any] | None = None
    parts: Sequence[Part] | None = None


@dataclass
class RecordedStep:
    """A turn as it was: what the reply was read as, and what each action led to."""

    event: Mapping[str, Any]
    actions: tuple[Action, ...]
    observations: tuple[Observation, ...]


@dataclass
class NodeRecord:
    """One agent or one completion of the tree."""

    path: str
    calls: list[RecordedCall] = field(default_factory=list["RecordedCall"])
    steps: dict[int, RecordedStep] = field(default_factory=dict[int, RecordedStep])
    children: dict[int, list[Mapping[str, Any]]] = field(default_factory=dict[int, list[Mapping[str, Any]]])
    """The `subcall_start` events of each turn, in order."""
    cells: dict[int, list[Mapping[str, Any]]] = field(default_factory=dict[int, list[Mapping[str, Any]]])
    """The `cell_calls` events of each turn."""
    trees: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    start: Mapping[str, Any] | None = None
    over: Mapping[str, Any] | None = None
    """Its `subcall_end`."""
    end: Mapping[str, Any] | None = None
    """Its `run_end`."""
    problem: Mapping[str, Any] | None = None

    def messages(self) -> list[Message]:
        """All messages of its conversation, each once, in the order in which they were first sent."""
        found: dict[Message, None] = {}
        for call in self.calls:
            if call.event.get("purpose") != "compaction":
                found |= dict.fromkeys(call.prompt.messages)
        return list(found)

    def said(self, turn: int) -> list[Message]:
        """The messages that a turn added (0: the brief), as they were first sent."""
        for call in self.calls:
            if call.event.get("purpose") != "compaction" and call.event["turn"] == turn + 1:
                return [m for m in call.prompt.messages if m.turn == turn]
        return []

    def prompt_after(self, turn: int) -> Prompt | None:
        """The request that followed a turn; `None` where the run ended with it."""
        asked = (c for c in self.calls if c.event.get("purpose") != "compaction" and c.event["turn"] == turn + 1)
        return next((call.prompt for call in asked), None)

    def until(self, turn: int) -> list[tuple[int, RecordedStep]]:
        """The turns up to that one, in order."""
        return [(number, step) for number, step in sorted(self.steps.items()) if number <= turn]

    @property
    def last(self) -> int:
        """The number of the last turn that was finished; 0 where there is none."""
        return max(self.steps, default=0)


class Recorded:
    """A run, by node."""

    def __init__(self, record: RunRecord) -> None:
        self.record, self.start = record, record.start
        self.nodes: dict[str, NodeRecord] = {}
        self.attempts = record.of("attempt_start")
        self._read(record.events, iter(list(record.requests())))
        self._count()

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """How many tokens prompts were found to have, by their digests."""
        found = {c.prompt.digest(): int(c.event["estimate"]) for c in self.calls() if "estimate" in c.event}
        for event in self.record.of("compaction"):
            found |= event["sizes"]
        return found

    @property
    def context(self) -> Mapping[str, Any]:
        """What is known of the context; its hash may have come later than the start."""
        return (self.record.of("context") or [self.start.get("context") or {}])[-1]

    def check_context(self, context: Any) -> None:
        """Raise `ReplayError` where a context is another than the recorded one."""
        found, stated = (context_fingerprint(context) or {}).get("sha256"), self.context
        if "sha256" in stated and found != stated["sha256"]:
            raise ReplayError(
                f"the context given is another than the recorded one (SHA-256 {str(found)[:12]}, recorded "
                f"{stated['sha256'][:12]}): give the very text that the run was given"
            )

    def earlier(self) -> tuple[tuple[Message, ...], int]:
        """Of a session's further question what was said before it, and how many of the messages had been sent."""
        event = next(iter(self.record.of("earlier")), None)
        if event is None:
            return (), 0
        bodies = {e["hash"]: message_of(e["message"]) for e in self.record.of("message")}
        return tuple(bodies[key] for key in event["messages"]), int(event["sent"])

    @property
    def root(self) -> NodeRecord:
        return self.node(ROOT)

    def node(self, path: str) -> NodeRecord:
        """The node of that path, made where nothing was recorded of it."""
        return self.nodes.setdefault(path, NodeRecord(path))

    def calls(self) -> Iterable[RecordedCall]:
        return (call for node in self.nodes.values() for call in node.calls)

    def text(self, sha256: str | None) -> str | None:
        """A stored text by its hash."""
        return None if sha256 is None else self.record.texts.get(sha256)

    def stored(self, key: str | None) -> Mapping[str, Any]:
        """An event that others name by its hash."""
        return next((e for e in self.record.events if key is not None and e.get("hash") == key), {})

    def _read(self, events: Sequence[Mapping[str, Any]], requests: Any) -> None:
        under_way: dict[str, RecordedCall] = {}
        for number, event in enumerate(events, 1):
            if event["event"] not in ("run_start", "message", "settings", "text", "tools", "context", "earlier"):
                with whole(event, number):
                    self._take(event, under_way, requests)

    def _take(self, event: Mapping[str, Any], under_way: dict[str, RecordedCall], requests: Any) -> None:
        kind = event["event"]
        node = self.node(node_of(event))
        if kind == "request":
            _, prompt = next(requests)
            _ = event["at"], event["turn"]  # what all who read calls look at
            call = RecordedCall(0, event, prompt)
            under_way[node.path] = call
            node.calls.append(call)
        elif kind in ("reply", "model_error"):
            call = under_way.pop(node.path, None)
            if call is not None:
                call.ended = event
                call.reply = reply_of(event["reply"]) if kind == "reply" else None
                call.error = str(event["error"]) if kind == "model_error" else None
        elif kind == "turn":
            actions = tuple(action_of(a) for a in event["actions"])
            node.steps[event["turn"]] = RecordedStep(event, actions, tuple(map(observation_of, event["observations"])))
        elif kind == "subcall_start":
            node.start = event
            self.node(event["parent"]).children.setdefault(event["turn"], []).append(event)
        elif kind in _KEPT_AS:
            setattr(node, _KEPT_AS[kind], event)
        elif kind == "tree":
            node.trees.append(event)
        elif kind == "cell_calls":
            node.cells.setdefault(event["turn"], []).append(event)

    def _count(self) -> None:
        """Numbers and counted tokens of the calls, as the ledger had them."""
        parts: dict[int, Sequence[Part]] = {0: ()}
        every = sorted(self.calls(), key=lambda c: c.event["at"])
        for place, call in enumerate(every, 1):
            call.number = place
        for call in sorted(every, key=lambda c: (c.ended or {}).get("charged", {}).get("call", 0)):
            charged = (call.ended or {}).get("charged")
            if charged is not None:
                call.number = int(charged["call"])
                if charged["parts"] is not None:
                    call.parts = parts[call.number] = restored(parts.get(charged["after"], ()), charged["parts"])
