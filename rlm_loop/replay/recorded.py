"""A recorded run by the nodes of its call tree: requests, replies, turns and ends of each agent and completion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlm_loop.accounting.tree import ROOT, node_of
from rlm_loop.agents.past_run import turn_of
from rlm_loop.messages import Message, Prompt, Reply
from rlm_loop.outcome import Turn
from rlm_loop.traces.reader import RunRecord, message_of, reply_of, whole


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
        self.root = NodeRecord(ROOT)
        self.nodes = {ROOT: self.root}
        prompts = (prompt for _, prompt, reply in record.exchanges() if reply is None)
        for event in record.events:
            with whole(event):
                node = self.nodes.setdefault(node_of(event), NodeRecord(node_of(event)))
                match event["event"]:
                    case "request":
                        _ = event["at"], event["turn"]  # every reader of calls needs them
                        node.calls.append(RecordedCall(event, next(prompts)))
                    case "reply" | "model_error" if node.calls and node.calls[-1].ended is None:
                        call = node.calls[-1]
                        call.ended = event
                        if event["event"] == "reply":
                            call.reply = reply_of(event["reply"])
                        else:
                            call.error = str(event["error"])
                    case "turn":
                        replies = [c.reply for c in node.calls if c.reply and c.of_turn and c.turn == event["turn"]]
                        node.steps[event["turn"]] = turn_of(event, replies[-1] if replies else Reply())
                    case "subcall_start":
                        node.start = event
                    case "subcall_end":
                        node.over = event
                    case "run_end":
                        node.end = event
                    case "problem":
                        node.problem = event
                    case _:
                        pass

    @property
    def problem(self) -> Mapping[str, Any]:
        """The root's `problem` event; empty without one."""
        return self.root.problem or {}

    @property
    def question(self) -> str:
        return str(self.start.get("question", ""))

    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Return the tools that the root was offered besides ours, as the model was told of them."""
        key = self.problem.get("tools")
        return next((e["tools"] for e in self.record.of("tools") if key and e["hash"] == key), ())

    @property
    def context(self) -> Mapping[str, Any]:
        """Type, size and hash of the context; its hash may have come later than the start."""
        return (self.record.of("context") or [self.start.get("context") or {}])[-1]

    def earlier(self) -> tuple[tuple[Message, ...], int]:
        """Return what a session had said before this question, and the number of messages already sent."""
        for event in self.record.of("earlier"):
            bodies = {e["hash"]: message_of(e["message"]) for e in self.record.of("message")}
            return tuple(bodies[key] for key in event["messages"]), int(event["sent"])
        return (), 0
