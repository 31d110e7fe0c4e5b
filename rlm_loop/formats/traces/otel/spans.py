"""The spans of a run: agents, the calls of models in them, the cells and tools that they ran, and what those started.

A span's id is made of the run and its place in it, so that a run has the same spans however often it is sent.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rlm_loop.actions import Observation
from rlm_loop.formats.traces.calls import PYTHON, Called
from rlm_loop.formats.traces.conversation import AgentConversation, RunConversation, Step
from rlm_loop.formats.traces.otel.attributes import of_agent, of_call, of_score, of_tool

#: Stops that are an error of the run, not a limit that it met.
FAILED = ("failed", "interrupted")


@dataclass(frozen=True)
class SpanData:
    """One span: `id` has 16 hexadecimal digits, `trace` 32; times are seconds since 1970.

    `parent` is `None` for the first of a run.  `error` is what kind of error it ended with, and one line; `None` where
    it did not.  `events` are names and attributes of what happened at its end.
    """

    trace: str
    id: str
    parent: str | None
    name: str
    start: float
    end: float
    kind: Literal["internal", "client"] = "internal"
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    error: tuple[str, str] | None = None
    events: tuple[tuple[str, Mapping[str, Any]], ...] = ()


def spans_of(conversation: RunConversation, *, content: bool = True) -> list[SpanData]:
    """All spans of a run, each after its parent; without `content` no text that anybody said, only names and figures.

    A run that never ended has open ones: they reach to the latest time that is known.
    """
    return list(_Spans(conversation, content).agent(conversation.root, None))


class _Spans:
    def __init__(self, conversation: RunConversation, content: bool) -> None:
        self.conversation, self.content = conversation, content
        about = conversation.about
        told = [conversation.id, conversation.root.began, *(about.get(name) for name in ("agent", "model", "question"))]
        self.trace = hashlib.sha256(repr(told).encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def agent(self, agent: AgentConversation, parent: str | None) -> Iterator[SpanData]:
        """An agent with all below it."""
        below = list[SpanData]()
        own = self._id(agent.path)
        for place, step, children in self.conversation.in_order(agent):
            below.append(self._call(step, own, f"{agent.path}/{place}"))
            below += self._acted(step, children, own, f"{agent.path}/{place}")
        for child in self.conversation.unplaced(agent):
            below += self.agent(child, own)
        single = agent.start.get("kind") == "completion"
        closed = agent.over is not None or agent.end is not None
        score = {} if agent.parent else of_score(self.conversation, self.content)
        yield SpanData(
            self.trace,
            own,
            parent,
            "llm_query" if single else f"invoke_agent {self.conversation.agent}",
            agent.began,
            max([agent.ended if closed else agent.began, *(span.end for span in below)]),
            "internal",
            of_agent(agent, self.conversation, self.content),
            self._told(_fault(agent)),
            (("gen_ai.evaluation.result", score),) if score else (),
        )
        yield from below

    def _call(self, step: Step, parent: str, at: str) -> SpanData:
        attributes = of_call(step, self.conversation, self.content)
        error = None
        if step.error is not None:
            named = re.match(r"(\w+): ?", step.error)
            error = (named[1] if named else "_OTHER", step.error)
        times = step.started, max(step.started, step.ended)
        name = f"chat {step.model}".strip()
        return SpanData(self.trace, self._id(at), parent, name, *times, "client", attributes, self._told(error))

    def _acted(self, step: Step, children: Sequence[AgentConversation], parent: str, at: str) -> Iterator[SpanData]:
        """What the actions of a turn ran, one after the other, and the agents that each of them started.

        A trace says how long a cell ran without its sub-calls, and when these were: a sub-call belongs to the first
        action that was not over when it began.
        """
        waiting = sorted(children, key=lambda child: (child.began, child.path))
        calls = [(call, seen) for _, seen, call in step.acts(f"call_{step.turn}") if call is not None]
        if waiting and not step.actions:  # the turn is not recorded yet; its first action has this id
            asked = [call.name for call in step.reply.tool_calls] if step.reply else []
            calls = [(Called(f"call_{step.turn}_1", (asked or [PYTHON])[0], {}, {}), Observation())]
        clock = step.ended
        for number, (call, observation) in enumerate(calls):
            start, end, mine = clock, clock + observation.seconds, list[AgentConversation]()
            while waiting and (number + 1 == len(calls) or waiting[0].began <= end):
                child = waiting.pop(0)
                end += max(0.0, child.ended - max(child.began, *(other.ended for other in mine), start))
                mine.append(child)
            clock = max(end, *(child.ended for child in mine), start)
            yield self._tool(call, observation, (start, clock), parent, f"{at}/{number}")
            for child in mine:
                yield from self.agent(child, self._id(f"{at}/{number}"))
        for child in waiting:
            yield from self.agent(child, parent)

    def _tool(
        self, call: Called, observation: Observation, times: tuple[float, float], parent: str, at: str
    ) -> SpanData:
        failure = observation.failure
        error = None if failure is None else (str(failure.kind), failure.message)
        attributes = of_tool(call, observation, self.conversation, self.content)
        name = f"execute_tool {call.name}"
        return SpanData(self.trace, self._id(at), parent, name, *times, "internal", attributes, self._told(error))

    def _id(self, place: str) -> str:
        return hashlib.sha256(f"{self.trace}/{place}".encode()).hexdigest()[:16]

    def _told(self, error: tuple[str, str] | None) -> tuple[str, str] | None:
        return (error[0], error[1] if self.content else "") if error else None


def _fault(agent: AgentConversation) -> tuple[str, str] | None:
    """What went wrong with an agent: a sub-call without an answer, a run that failed or was interrupted."""
    over, end = agent.over or {}, agent.end or {}
    if over.get("error"):
        return str(over["error"]["kind"]), str(over["error"]["message"])
    if end.get("stop") in FAILED:
        return str(end["stop"]), str(end.get("reason") or "")
    return None
