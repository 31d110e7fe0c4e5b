"""A recorded run by the nodes of its call tree: requests, replies, turns and ends of each agent and completion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rlm_loop.accounting.tree import ROOT, node_of
from rlm_loop.actions import Action, Observation
from rlm_loop.agents.past_run import action_of, observation_of
from rlm_loop.messages import Message, Prompt, Reply
from rlm_loop.repl.contexts.fingerprint import context_fingerprint
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
    def of_turn(self) -> bool:
        """Whether the call is a turn's own, not one for a summary."""
        return self.event.get("purpose") != "compaction"


@dataclass
class RecordedStep:
    """A finished turn: its event, the actions read from the reply, and the observation of each."""

    event: Mapping[str, Any]
    actions: tuple[Action, ...]
    observations: tuple[Observation, ...]


@dataclass
class NodeRecord:
    """One agent or one completion of the tree; `start` and `over` are the events of the sub-call that it was."""

    path: str
    calls: list[RecordedCall] = field(default_factory=list["RecordedCall"])
    steps: dict[int, RecordedStep] = field(default_factory=dict[int, RecordedStep])
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

    @property
    def last(self) -> int:
        """The number of the last finished turn; 0 without any."""
        return max(self.steps, default=0)


class Recorded:
    """A run of one agent, by node.  Raises `TraceError` for a damaged event."""

    def __init__(self, record: RunRecord) -> None:
        self.record, self.start = record, record.start
        self.nodes: dict[str, NodeRecord] = {}
        prompts = iter([prompt for _, prompt in record.requests()])
        for number, event in enumerate(record.events, 1):
            if event["event"] not in _OF_NO_NODE:
                with whole(event, number):
                    prompt = next(prompts) if event["event"] == "request" else None
                    self._add(event["event"], event, self.node(node_of(event)), prompt)

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
            actions = tuple(action_of(a) for a in event["actions"])
            node.steps[event["turn"]] = RecordedStep(event, actions, tuple(map(observation_of, event["observations"])))
        elif kind in _SINGLE:
            setattr(node, _SINGLE[kind], event)

    @property
    def root(self) -> NodeRecord:
        return self.node(ROOT)

    @property
    def problem(self) -> Mapping[str, Any]:
        """The root's `problem` event; empty without one."""
        return self.root.problem or {}

    @property
    def question(self) -> str:
        return str(self.start.get("question", ""))

    def node(self, path: str) -> NodeRecord:
        """Return the node of a path, made where nothing was recorded of it."""
        return self.nodes.setdefault(path, NodeRecord(path))

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
        """Raise `ReplayError` where a context is another than the recorded one."""
        digest, stated = (context_fingerprint(context) or {}).get("sha256"), self.context
        if "sha256" in stated and digest != stated["sha256"]:
            raise ReplayError(
                f"the context given is another than the recorded one (SHA-256 {str(digest)[:12]}, recorded "
                f"{stated['sha256'][:12]}): give the very text that the run was given"
            )

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
