"""A client's session: its conversations, its ledger, its times, and its trace."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlm_loop.accounting.budget import Account, BudgetSpent
from rlm_loop.accounting.call_tree import PATIENCE, Caller
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.accounting.scope import Slots
from rlm_loop.actions import Action, Answer, CallTool, Observation
from rlm_loop.agents.meter import Meter
from rlm_loop.messages import Message, Prompt, Reply, common
from rlm_loop.meter.conversations import Conversations, MeteredConversation
from rlm_loop.meter.figures import MeteredCall
from rlm_loop.meter.request import Request, for_ours
from rlm_loop.meter.served import Heard, Served
from rlm_loop.models.base import Model
from rlm_loop.outcome import Stop
from rlm_loop.traces.reader import RunRecord, read
from rlm_loop.traces.trace import Trace
from rlm_loop.versions import versions

#: Note in a trace of how such a run ended: from outside one cannot know.
ENDED = "metered from outside: the client asked for no more; the last reply stands as the answer"


@dataclass(frozen=True)
class Shared:
    """State that all sessions of a meter share: `known` are texts by cause, `told` is called at a request's end."""

    model: Served | Heard
    account: Account
    slots: Slots
    known: Mapping[str, Sequence[str]] | None
    told: Callable[[MeteredCall], None] | None


class MeterSession:
    """Requests of one client, told from others by key, header or path.  Safe to use from many threads."""

    def __init__(self, name: str, shared: Shared, trace: Trace) -> None:
        self.name = name
        self.ledger = Ledger()
        self.trace = trace
        self.calls: list[MeteredCall] = []
        self.passing: list[Any] = []  # exchanges with a provider that are not charged yet, in their order
        self._shared = shared
        self._root = Meter(shared.model, shared.account, self.ledger, trace, Caller(), "metered", slots=shared.slots)
        self._conversations = Conversations()
        self._lock = threading.Condition()
        self._open: dict[int, MeteredCall] = {}
        self._numbers = 0
        self._started: float | None = None
        self._run = (f"session {name}", "metered")
        self.result: tuple[Any, Stop, str] | None = None  # the run's end as answer, stop and reason, where it is known
        self.refused: BudgetSpent | None = None  # the limit that the latest refused request met

    def begin(self, task: str, question: str, agent: str) -> None:
        """Begin the trace before the first request, as that of a task; once."""
        self._run = (task, agent)
        self._start(question, MeteredCall(self.name, 0, "chat", arrived=time.perf_counter()))

    def arrive(self, protocol: str, arrived: float) -> MeteredCall:
        """A request came in."""
        with self._lock:
            self._numbers += 1
            call = MeteredCall(self.name, self._numbers, protocol, arrived=arrived)
            self._open[call.number] = call
            return call

    def complete(self, request: Request, call: MeteredCall) -> Reply:
        """Return the reply of a model of ours, charged and recorded; every tool call in it has an id.

        Raises `Refused` for what it cannot read, and what the model raises (`ModelError`, `BudgetSpent`).
        """
        model = self._shared.model
        assert isinstance(model, Served)
        if model.model.sampling is None:  # a script or a recording takes none
            request = replace(request, sampling={}, not_applied={**request.sampling, **request.not_applied})
        request = replace(request, messages=for_ours(request.messages))
        return self._charge(request, call, model)

    def heard(self, request: Request, reply: Reply, call: MeteredCall) -> None:
        """Charge and record what went through to a provider and came back; the model is named as in tables."""
        model = self._shared.model
        assert isinstance(model, Heard)
        request = replace(request, not_applied={}, sampling={})
        self._charge(request, call, replace(model, name=request.model, reply=reply))

    def _charge(self, request: Request, call: MeteredCall, model: Model) -> Reply:
        call.model, call.stream, call.not_applied = request.model, request.stream, request.not_applied
        with self._lock:
            conversation = self._conversations.find(request.messages, call.arrived) or self._begin(request, call)
            conversation.busy = True
            messages = conversation.causes.messages(request.messages, conversation.turn)
            self._close_turn(conversation, request, messages, call.arrived)
            conversation.turn_began = call.arrived
            conversation.asked(request.messages)
        metered = conversation.metered
        call.node, call.turn = metered.node.path, conversation.turn + 1
        prompt = Prompt(messages, request.tools, request.stop, request.reply_schema, request.sampling)
        try:
            metered.model, metered.max_tokens = model, request.max_tokens
            reply = metered.complete(prompt, turn=call.turn)
            charged = next(c for c in reversed(self.ledger.calls) if (c.node, c.turn) == (call.node, call.turn))
            call.call, call.model_seconds = charged.call, reply.seconds
            call.not_applied = {**call.not_applied, **(reply.extra.get("not_applied") or {})}
            call.input_tokens, call.output_tokens = charged.usage.input_tokens, charged.usage.output_tokens
            call.cached_tokens = charged.usage.cache_read_tokens
            call.cache_write_tokens = charged.usage.cache_write_tokens
            call.reasoning_tokens = charged.usage.reasoning_tokens
            named = (replace(c, id=c.id or f"call_{charged.call}_{i}") for i, c in enumerate(reply.tool_calls))
            reply = replace(reply, tool_calls=tuple(named))
            with self._lock:
                conversation.ended = call.ended or time.perf_counter()
                conversation.replied(reply)
            return reply
        except BudgetSpent as error:
            self.refused = error
            raise
        finally:
            conversation.busy = False

    def settle(self, call: MeteredCall) -> None:
        """The answer is out, or the client had hung up: the request is written down, which nobody waits for."""
        call.meter_seconds = max(call.ended - call.arrived - call.model_seconds, 0.0)
        try:
            with self._lock:
                before = [one for one in (*self.calls, *self._open.values()) if one.number < call.number]
                ends = [one.ended for one in before if 0.0 < one.ended <= call.arrived]
                if ends:
                    call.harness_seconds = call.arrived - max(ends) if len(ends) == len(before) else 0.0
                if self._open.pop(call.number, None) is not None:  # else the meter was closed meanwhile
                    self.calls.append(call)
                    self._record(call)
                self._lock.notify_all()
        finally:
            if self._shared.told is not None:
                self._shared.told(call)

    def record(self) -> RunRecord:
        """The trace so far, read back.  Raises `TraceError` where it cannot be."""
        if self.trace.path is not None:
            return read(self.trace.path)
        return RunRecord(tuple(self.trace.events))

    def wait(self, patience: float) -> None:
        """Wait for the requests under way to be written down, `patience` seconds at most."""
        with self._lock:
            self._lock.wait_for(lambda: not self._open, patience)

    def end(self) -> None:
        """The client will ask for no more: the trace gets its end.

        Requests under way are waited for, `PATIENCE` seconds at most; what the others cost is not known, and is said.
        """
        with self._lock:
            self._lock.wait_for(lambda: not self._open, PATIENCE)
            self._root.node.scope.end("the meter is closing")
            left, self._open = list(self._open.values()), {}
            now = time.perf_counter()
            for call in left:
                call.delivered = False
                if not call.ended:
                    call.status, call.error = 503, "under way when the meter was closed; what it costs is not known"
                self.calls.append(call)
                self._record(call)
            for conversation in self._conversations.all:
                self._close_turn(conversation, None, (), now)
                node, seconds = conversation.metered.node, now - conversation.began
                if node.parent is not None:
                    about = {"node": node.path, "depth": node.depth, "ok": conversation.turn > 0, "error": None}
                    self.trace.record("subcall_end", **about, seconds=seconds)
            if self._started is not None:
                self._end_run(now - self._started)
            self.trace.close()

    def _record(self, call: MeteredCall) -> None:
        began = self._start("", call) if self._started is None else self._started
        kept = {k: v for k, v in vars(call).items() if k not in ("session", "arrived", "ended")}
        self.trace.record("metered", at_second=call.arrived - began, **kept)

    def _start(self, question: str, call: MeteredCall) -> float:
        """The trace begins, with the first request that was read, or one that was refused before it."""
        self._started = call.arrived
        self.trace.start(
            task=self._run[0],
            question=question,
            agent=self._run[1],
            settings={"agent": self._run[1], "session": self.name, "protocol": call.protocol, "model": call.model},
            model=self._root.model.name,
            budget=self._root.account.budget,
            versions=versions(),
            context=None,
        )
        return call.arrived

    def _begin(self, request: Request, call: MeteredCall) -> MeteredConversation:
        """A new conversation: the session's own, or one beside it."""
        root = self._root
        if self._started is None:
            self._start(next((one.text for one in request.messages if one.role == "user"), ""), call)
        if not self._conversations.all:
            metered = root
        else:
            node = Caller(root.node, root.node.numbers(1)[0])
            metered = root.scoped(node, purpose="metered", max_tokens=request.max_tokens)
            about = {"parent": root.node.path, "turn": max(root.turn, 1), "depth": node.depth, "model": root.model.name}
            self.trace.record("subcall_start", node=node.path, kind="agent", **about)
        conversation = MeteredConversation(metered, self._shared.known)
        conversation.began = call.arrived
        self._conversations.all.append(conversation)
        return conversation

    def _close_turn(
        self, conversation: MeteredConversation, request: Request | None, messages: Sequence[Message], now: float
    ) -> None:
        """The turn before is whole once the next request shows what came of it."""
        reply, conversation.reply_open = conversation.reply_open, None
        if reply is None:
            return
        new = messages[common(conversation.said, request.messages) :] if request is not None else ()
        actions, observations = turn_of(reply, new)
        metered = conversation.metered
        about = {"seconds": now - conversation.turn_began, "spent": metered.account.spent}
        metered.record("turn", actions=actions, observations=observations, **about)

    def _end_run(self, seconds: float) -> None:
        node, account = self._root.node, self._root.account
        first = self._conversations.all[0] if self._conversations.all else None
        last = None if first is None else first.reply
        answer = None if last is None else last.text or "\n".join(c.arguments for c in last.tool_calls)
        seen = (None, Stop.FAILED, "the model gave no reply") if last is None else (answer, Stop.ANSWERED, ENDED)
        answer, stop, reason = self.result or seen
        self.trace.record(
            "run_end",
            node=node.path,
            depth=node.depth,
            stop=stop,
            reason=reason,
            answer=answer,
            answer_form="text" if isinstance(answer, str) else "object",
            artifact=None,
            usage=self.ledger.usage,
            over_budget=account.over(),
            seconds=seconds,
            working_seconds=seconds,
            steps=0 if first is None else first.turn,
            isolation="",
        )


def turn_of(reply: Reply, new: Sequence[Message]) -> tuple[tuple[Action, ...], tuple[Observation, ...]]:
    """Return what a reply asked for and what came of it, as the messages that followed show."""
    ours = [m for m in new if m.role != "assistant"]
    told = "".join(
        s.text for m in ours if m.role == "user" for s in m.spans if s.cause not in ("task", "scaffold:echo")
    )
    if not reply.tool_calls:
        return (Answer(reply.text),), (Observation(told),)
    results: dict[str | None, list[str]] = {}  # calls without ids of their own go by their name, and are in order
    for one in ours:
        if one.role == "tool":
            results.setdefault(one.tool_call_id, []).append(one.text)
    actions = tuple(CallTool(c.name, c.arguments, c.id) for c in reply.tool_calls)
    texts = [of.pop(0) if (of := results.get(c.id)) else "" for c in reply.tool_calls]
    texts[-1] = "\n".join(filter(None, (texts[-1], told)))
    return actions, tuple(Observation(text) for text in texts)
