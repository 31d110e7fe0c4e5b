"""The transcript of an Inspect sample, read: agents by their spans, model calls as steps, tool events as results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rlm_loop.actions import Action, Observation
from rlm_loop.agents.past_run import action_of
from rlm_loop.formats.traces.calls import action_from, observed, ours_of, reply_from, spoken, text_of
from rlm_loop.formats.traces.conversation import AgentConversation, Step, answered, kept_of, requested
from rlm_loop.formats.traces.inspect_events import FAILURES, STOPS
from rlm_loop.formats.traces.usage import from_inspect
from rlm_loop.messages import Message, Reply, ToolCall

_STOPS = {theirs: ours for ours, theirs in STOPS.items()} | {"model_length": "length"}
_FAILURES = {theirs: ours for ours, theirs in FAILURES.items() if theirs != "limit"} | {"approval": "denied"}


@dataclass
class _Open:
    """An agent whose events are being read."""

    path: str
    ours: Mapping[str, Any]
    parent: str = ""
    turn: int = 1
    steps: list[Step] = field(default_factory=list[Step])
    acted: Sequence[Mapping[str, Any] | None] | None = None
    tools: list[Any] = field(default_factory=list[Any])
    schemas: tuple[Mapping[str, Any], ...] = ()
    children: int = 0


class Reading:
    """Goes through a transcript: agents by their spans, model calls as steps, tool events as what came of them."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.open = _Open("0", {})
        self.found: dict[str, _Open] = {"0": self.open}
        self.of_span: dict[str, _Open] = {}
        self.scoring: set[str] = set()

    def agents(self, events: Sequence[Any]) -> list[AgentConversation]:
        """All agents, the root first."""
        for event in events:
            parent = getattr(event, "parent_id", None)
            if event.event == "span_begin":
                above = self.of_span.get(parent or "", self.open)
                if event.type == "scorers" or parent in self.scoring:
                    self.scoring.add(event.id)
                self.of_span[event.id] = self._begin(event, above) if event.type == "agent" else above
            elif event.event == "model" and event.span_id not in self.scoring:  # scoring is no part of the run
                self._model(event)
            elif event.event == "tool":
                self.of_span.get(event.span_id or "", self.open).tools.append(event)
        return [self._agent(found) for found in self.found.values()]

    def _begin(self, event: Any, above: _Open) -> _Open:
        """The agent of a span: ours says which; of others the first is the root, and those within it are below."""
        ours = ours_of(event.metadata)
        if ours:
            path = str(ours["path"])
        elif not above.steps and above.path == "0" and not above.children:
            return above
        else:
            above.children += 1
            path = f"{above.path}.{above.children}"
        opened = self.found[path] = _Open(path, ours, above.path, max(len(above.steps), 1))
        return opened

    def _model(self, event: Any) -> None:
        agent = self.of_span.get(event.span_id or "", self.open)
        _settle(agent)
        ours = ours_of(event.metadata)
        purpose = str(ours.get("purpose", "agent"))
        if ours:
            messages = requested(ours["request"], purpose, agent.steps)
            agent.schemas = tuple(ours.get("tools", agent.schemas))
        else:
            messages = tuple(message_from(message, place) for place, message in enumerate(event.input))
            tools = [tool.model_dump(exclude_none=True) for tool in event.tools]
            agent.schemas = tuple({"type": "function", "function": tool} for tool in tools)
        began = event.timestamp.timestamp()
        agent.steps.append(
            Step(
                int(ours.get("turn", len(agent.steps) + 1)),
                purpose,
                event.model if event.model != "unknown" or not ours else "",
                messages,
                _reply(event, ours),
                kept_of(messages, purpose, agent.steps),
                error=ours.get("error") if ours else event.error,
                tools=agent.schemas,
                causes=ours.get("input_tokens_by_cause") or {},
                charged=ours.get("charged"),
                started=ours.get("started", began),
                ended=ours.get("ended", event.completed.timestamp() if event.completed else began),
                seconds=ours.get("seconds"),
            )
        )
        agent.acted = ours["acted"] if ours else None

    def _agent(self, found: _Open) -> AgentConversation:
        _settle(found)
        ours = found.ours
        steps = tuple(found.steps if ours else answered(found.steps))
        times = (steps[0].started, steps[-1].ended) if steps else (0.0, 0.0)
        start: Mapping[str, Any] = ours.get("start") or {}
        over = ours.get("over")
        if found.parent and not ours:
            start, over = (
                {"parent": found.parent, "turn": found.turn, "kind": "agent", "model": self.model},
                {"ok": True},
            )
        ends = (ours.get("end"), over, ours.get("began", times[0]), ours.get("ended", times[1]))
        return AgentConversation(found.path, steps, start, *ends)


def _settle(agent: _Open) -> None:
    """Give the latest step what came of it: tool events in their order, and what has no such event where ours says."""
    if not agent.steps:
        return
    pairs = [_of_tool(event) for event in agent.tools] if agent.acted is None else list(_acted(agent))
    agent.tools.clear()
    if pairs:
        actions, observations = tuple(a for a, _ in pairs), tuple(o for _, o in pairs)
        agent.steps[-1] = replace(agent.steps[-1], actions=actions, observations=observations)


def _acted(agent: _Open) -> Iterator[tuple[Action, Observation]]:
    events = iter(agent.tools)
    for item in agent.acted or ():
        yield (
            _of_tool(next(events))
            if item is None
            else (
                action_of(item["action"]),
                observed(item["text"], item["observation"]),
            )
        )


def _of_tool(event: Any) -> tuple[Action, Observation]:
    ours = ours_of(event.metadata)
    rest = ours.get("observation")
    if not ours:
        error = event.error
        failure = None if error is None else {"kind": _FAILURES.get(error.type, "runtime"), "message": error.message}
        rest = {"failure": failure, "seconds": event.working_time or 0.0}
    action = action_from(event.function, event.arguments, event.id, ours.get("action"))
    return action, observed(text_of(event.result), rest)


def _reply(event: Any, ours: Mapping[str, Any]) -> Reply | None:
    if not event.output.choices or (ours and "reply" not in ours):
        return None
    choice, usage = event.output.choices[0], event.output.usage
    spent = None if usage is None else from_inspect(usage.model_dump())
    message = choice.message
    if ours:
        return reply_from(text_of(message.content), spent, ours["reply"])
    rest = {"finish_reason": _STOPS.get(choice.stop_reason, "stop"), "seconds": event.output.time or 0.0}
    return reply_from(text_of(message.content), spent, rest, calls_of(message))


def calls_of(message: Any) -> list[ToolCall]:
    """The tool calls of a message of Inspect's."""
    calls = getattr(message, "tool_calls", None) or ()
    return [ToolCall(c.id, c.function, json.dumps(c.arguments, ensure_ascii=False)) for c in calls]


def message_from(message: Any, place: int) -> Message:
    """A message of Inspect's as ours; `place` is its number in the request."""
    first = message.role == "user" and place < 2
    id = message.tool_call_id if message.role == "tool" else None
    return spoken(message.role, text_of(message.content), cause="task" if first else "", calls=calls_of(message), id=id)
