"""A conversation written as a run of ours, so that pages, the ledger and the call tree read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rlm_loop.formats.traces.conversation import AgentConversation, RunConversation, Step
from rlm_loop.messages import Message, Prompt
from rlm_loop.traces.reader import RunRecord, records_of
from rlm_loop.traces.trace import Trace, common, new_id


def write_conversations(conversations: Iterable[RunConversation], path: str | Path) -> None:
    """Append each as a run of the trace file `path`, under its id; one that is a number gets another, since numbers
    count the runs of a file.  Raises `TraceError` where it cannot be written."""
    now = _Now()
    with Trace(path, clock=now.time, ids=now.id) as trace:
        for conversation in conversations:
            _write(conversation, trace, now)


def record_of(conversation: RunConversation) -> RunRecord:
    """The conversation as a recorded run, without a file."""
    now = _Now()
    with Trace(clock=now.time, ids=now.id) as trace:
        _write(conversation, trace, now)
        return records_of(trace.events)[-1]


class _Now:
    """Says when and in which run what is written happened: as the conversation has it."""

    def __init__(self) -> None:
        self.at, self.run = 0.0, ""

    def time(self) -> float:
        return self.at

    def id(self) -> str:
        return new_id() if self.run.lstrip("-").isdecimal() or not self.run else self.run


def _write(conversation: RunConversation, trace: Trace, now: _Now) -> None:
    now.at, now.run = conversation.root.began, conversation.id
    trace.start(**conversation.about)
    _Writing(conversation, trace, now).agent(conversation.root)
    if (score := conversation.score) is not None:
        trace.record("score", resolved=score.resolved, value=score.value, reason=score.reason)


class _Writing:
    """One conversation on its way into a trace: what was asked of the caller before, and how many calls there were."""

    def __init__(self, conversation: RunConversation, trace: Trace, now: _Now) -> None:
        self.conversation, self.trace, self.now = conversation, trace, now
        self.calls = max(((step.charged or {}).get("call", 0) for step in conversation.steps), default=0)

    def agent(self, agent: AgentConversation) -> None:
        """An agent with all that it started: as it happens, calls first, then what they led to."""
        who = {"node": agent.path, "depth": agent.path.count(".")}
        self.now.at = agent.began
        if agent.start:
            self.trace.record("subcall_start", **who, **agent.start)
        sent: tuple[Message, ...] = ()
        for _, step, children in self.conversation.in_order(agent):
            self._call(step, sent, who)
            sent = step.messages
            for child in children:
                self.agent(child)
            if step.actions:
                told = {"turn": step.turn, "actions": step.actions, "observations": step.observations}
                self.trace.record("turn", **who, **told, seconds=step.seconds or 0.0)
        for child in self.conversation.unplaced(agent):
            self.agent(child)
        self.now.at = agent.ended
        for kind, event in (("run_end", agent.end), ("subcall_end", agent.over)):
            if event is not None:
                self.trace.record(kind, **who, **event)

    def _call(self, step: Step, sent: tuple[Message, ...], who: Mapping[str, Any]) -> None:
        self.now.at = step.started
        prompt = Prompt(step.messages, step.tools)
        asks = {**who, "turn": step.turn}
        request = self.trace.request(prompt, **asks, purpose=step.purpose, model=step.model)
        self.now.at = step.ended
        if step.reply is not None:
            charged = step.charged or self._uncounted(step, sent)
            self.trace.record("reply", **asks, request=request, reply=step.reply, charged=charged)
        elif step.error is not None:
            lost = {"call": step.charged["call"], "purpose": step.purpose} if step.charged else {}
            self.trace.record("model_error", **asks, request=request, error=step.error, **lost)

    def _uncounted(self, step: Step, sent: tuple[Message, ...]) -> dict[str, Any]:
        """What the ledger needs of a call whose tokens nobody counted: they are shared out by length."""
        self.calls += 1
        kept = common(sent, step.messages)
        return {"call": self.calls, "purpose": step.purpose, "exact": False, "sent": kept, "after": 0, "parts": None}
