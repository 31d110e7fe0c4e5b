"""A recorded run by the nodes of its call tree: requests, replies, turns and ends of each agent and completion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rlm_loop.accounting.tree import ROOT, node_of
from rlm_loop.agents.past_run import turn_of
from rlm_loop.messages import Message, Prompt, Reply
from rlm_loop.outcome import Turn
from rlm_loop.repl.contexts.on_disk import context_fingerprint
from rlm_loop.traces.reader import RunRecord, message_of, reply_of, whole

#: Fields of a node that hold one event of it each, by the event's kind.
_SINGLE = {"subcall_start": "start", "subcall_end": "over", "run_end": "end", "problem": "problem"}
_OF_NO_NODE = ("run_start", "message", "settings", "text", "tools", "context", "earlier")


class ReplayError(ValueError):
    """A run cannot be replayed or forked; the message is one line that says what to give or do."""


@dataclass
class RecordedCall:
    """A model call: its request, and its reply or error; with neither the record ends before it was answered."""

    event: Mapping[str, Any]
    prompt: Prompt
    reply: Reply | None = None
    error: str | None = None
    ended: Mapping[str, Any] | None = None

    @property
    def turn(self) -> int:
        return int(self.event["turn"])

    @property
    def model(self) -> str:
        return str(self.event.get("model") or "")

    @property
    def purpose(self) -> str:
        return str(self.event.get("purpose", "agent"))

    @property
    def of_turn(self) -> bool:
        """True for a turn's own call, false for one of a summary."""
        return self.purpose != "compaction"


@dataclass
class NodeRecord:
    """An agent or a completion of the recorded tree; `start` and `over` are the events of the sub-call that it was.

    `steps` are its finished turns by number.
    """

    path: str
    calls: list[RecordedCall] = field(default_factory=list[RecordedCall])
    steps: dict[int, Turn] = field(default_factory=dict[int, Turn])
    start: Mapping[str, Any] | None = None
    over: Mapping[str, Any] | None = None
    end: Mapping[str, Any] | None = None
    problem: Mapping[str, Any] | None = None

    def request_of(self, turn: int) -> Prompt | None:
        """Return the request of a turn; `None` where the run ended before it."""
        return next((call.prompt for call in self.calls if call.of_turn and call.turn == turn), None)

    def added(self, turn: int) -> Sequence[Message]:
        """Return the messages that a turn added to the next request; those of the task for turn 0."""
        request = self.request_of(turn + 1) if turn else next((c.prompt for c in self.calls if c.of_turn), None)
        return [message for message in (request or Prompt()).messages if message.turn == turn]


class Recorded:
    """A run of one agent, by node.  Raises `TraceError` for a damaged event."""

    def __init__(self, record: RunRecord) -> None:
        self.record, self.start = record, record.start
        self.nodes: dict[str, NodeRecord] = {}
        self.root = self._node(ROOT)
        prompts = iter([prompt for _, prompt in record.requests()])
        for event in record.events:
            if event["event"] not in _OF_NO_NODE:
                with whole(event):
                    prompt = next(prompts) if event["event"] == "request" else None
                    self._add(event["event"], event, self._node(node_of(event)), prompt)

    def _node(self, path: str) -> NodeRecord:
        return self.nodes.setdefault(path, NodeRecord(path))

    def _add(self, kind: str, event: Mapping[str, Any], node: NodeRecord, prompt: Prompt | None) -> None:
        if prompt is not None:
            _ = event["at"], event["turn"]  # every reader of calls needs them
            node.calls.append(RecordedCall(event, prompt))
        elif kind in ("reply", "model_error"):
            if node.calls and (call := node.calls[-1]).ended is None:
                call.ended = event
                call.reply = reply_of(event["reply"]) if kind == "reply" else None
                call.error = str(event["error"]) if kind == "model_error" else None
        elif kind == "turn":
            replies = [c.reply for c in node.calls if c.reply is not None and c.of_turn and c.turn == event["turn"]]
            node.steps[event["turn"]] = turn_of(event, replies[-1] if replies else Reply())
        elif kind in _SINGLE:
            setattr(node, _SINGLE[kind], event)

    @property
    def problem(self) -> Mapping[str, Any]:
        """The root's `problem` event; empty without one."""
        return self.root.problem or {}

    @property
    def question(self) -> str:
        return str(self.start.get("question", ""))

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Counted or estimated tokens of recorded prompts, by digest."""
        calls = [call for node in self.nodes.values() for call in node.calls if "estimate" in call.event]
        sizes = {call.prompt.digest(): int(call.event["estimate"]) for call in calls}
        for event in self.record.of("compaction"):
            sizes |= event["sizes"]
        return sizes

    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Return the tools that the root was offered besides ours, as the model was told of them."""
        key = self.problem.get("tools")
        return next((e["tools"] for e in self.record.of("tools") if key and e["hash"] == key), ())

    @property
    def context(self) -> Mapping[str, Any]:
        """Type, size and hash of the context; its hash may have come later than the start."""
        return (self.record.of("context") or [self.start.get("context") or {}])[-1]

    def check_context(self, context: Any) -> None:
        """Raise `ReplayError` where a context is missing, or another than the recorded one."""
        stated, given = self.context, context_fingerprint(context)
        if stated and given is None:
            about = f"{stated.get('type')}, {stated.get('bytes')} bytes"
            raise ReplayError(f"the run had a context ({about}), which a trace does not hold: give context=")
        if "sha256" in stated and given is not None and given["sha256"] != stated["sha256"]:
            raise ReplayError("the context given is another than the recorded one (by SHA-256): give the very same")

    def require_one_run(self) -> None:
        """Raise `ReplayError` for several attempts at a task."""
        if self.record.of("attempt_start"):
            raise ReplayError("the run is several attempts at a task: replay or fork the run of a single agent")

    def earlier(self) -> tuple[tuple[Message, ...], int]:
        """Return what a session had said before this question, and the number of messages already sent."""
        for event in self.record.of("earlier"):
            bodies = {e["hash"]: message_of(e["message"]) for e in self.record.of("message")}
            return tuple(bodies[key] for key in event["messages"]), int(event["sent"])
        return (), 0
