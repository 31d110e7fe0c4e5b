"""The transcript of a run as Inspect keeps it: spans of agents, calls of models, calls of tools.

What Inspect has no field for is in an event's `metadata` under `rlm_loop`: causes, the failure of a result, the words
around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rlm_loop.formats.traces.calls import (
    OURS,
    arguments_of,
    changed,
    function_of,
    rest_of,
    rest_of_reply,
    with_ids,
)
from rlm_loop.formats.traces.conversation import AgentConversation, RunConversation, Step
from rlm_loop.formats.traces.usage import known, to_inspect
from rlm_loop.messages import Message, Reply, ToolCall

#: Why a reply ended, and what failed with a tool: our words and Inspect's.
STOPS = {"stop": "stop", "length": "max_tokens", "tool_calls": "tool_calls", "content_filter": "content_filter"}
FAILURES = {"timeout": "timeout", "denied": "permission", "invalid_arguments": "parsing", "budget": "limit"}


class Transcript:
    """The events of one run; a message has the same id wherever it is sent, so that Inspect stores it once."""

    def __init__(self, conversation: RunConversation) -> None:
        self.conversation = conversation
        self.ids: dict[tuple[str, Message], str] = {}

    def events(self) -> list[dict[str, Any]]:
        """The whole transcript: Inspect looks for agents within a span called `solvers`."""
        root, span = self.conversation.root, f"{self.conversation.id}.solvers"
        begin = self._event("span_begin", span, root.began, id=span, name="solvers", type="solvers")
        end = self._event("span_end", span, root.ended, id=span)
        return [begin, *self.agent(root), end]

    def agent(self, agent: AgentConversation) -> Iterator[dict[str, Any]]:
        """The events of an agent and of all below it."""
        span = f"{self.conversation.id}.{agent.path}"
        ours = {"path": agent.path, "began": agent.began, "ended": agent.ended, "start": dict(agent.start)}
        ours |= {"end": agent.end, "over": agent.over}
        kind = str(agent.start.get("kind", "agent"))
        parent = f"{self.conversation.id}.{agent.parent or 'solvers'}"
        name = f"{kind} {agent.path}" if agent.parent else self.conversation.agent
        about = {"id": span, "parent_id": parent, "type": "agent", "name": name}
        yield self._event("span_begin", span, agent.began, **about, metadata={OURS: ours})
        for place, step, children in self.conversation.in_order(agent):
            yield self._model(step, agent, place, span)
            for child in children:
                yield from self.agent(child)
            yield from self._tools(step, span, place)
        for child in self.conversation.unplaced(agent):
            yield from self.agent(child)
        yield self._event("span_end", span, agent.ended, id=span)

    def said(self, agent: AgentConversation) -> list[dict[str, Any]]:
        """The conversation of an agent as it stood at its end."""
        own = [step for step in agent.steps if step.purpose == "agent"]
        if not own:
            return []
        last = [self._message(message, agent.path) for message in own[-1].messages]
        return last if own[-1].reply is None else [*last, _assistant(own[-1].reply, own[-1].model)]

    def _event(self, kind: str, span: str, at: float, **fields: Any) -> dict[str, Any]:
        start = max(0.0, at - self.conversation.root.began)
        return {"event": kind, "span_id": span, "timestamp": iso(at), "working_start": start, **fields}

    def _model(self, step: Step, agent: AgentConversation, place: int, span: str) -> dict[str, Any]:
        ours: dict[str, Any] = {
            "turn": step.turn,
            "purpose": step.purpose,
            "started": step.started,
            "ended": step.ended,
        }
        ours |= known({"seconds": step.seconds, "error": step.error, "charged": step.charged})
        ours["input_tokens_by_cause"] = dict(step.causes)
        ours["request"] = step.request
        if not place or step.tools != agent.steps[place - 1].tools:
            ours["tools"] = [dict(tool) for tool in step.tools]
        if step.reply is not None:
            ours["reply"] = rest_of_reply(step.reply)
        ours["acted"] = [  # what has no tool event
            {"action": changed(action), "text": seen.text, "observation": rest_of(seen)} if call is None else None
            for action, seen, call in step.acts("")
        ]
        return self._event(
            "model",
            span,
            step.started,
            model=step.model or "unknown",
            input=[self._message(message, agent.path) for message in step.messages],
            tools=[_tool(tool) for tool in step.tools],
            tool_choice="auto",
            config={},
            output=output_of(step),
            error=step.error,
            completed=iso(step.ended),
            working_time=None if step.reply is None else step.reply.seconds - step.reply.waited,
            metadata={OURS: ours},
        )

    def _tools(self, step: Step, span: str, place: int) -> Iterator[dict[str, Any]]:
        at = step.ended
        for _, observation, call in step.acts(f"call_{place + 1}"):
            if call is None:
                continue
            failure = observation.failure
            kind = None if failure is None else FAILURES.get(failure.kind, "unknown")
            yield self._event(
                "tool",
                span,
                at,
                id=call.id,
                function=call.name,
                arguments=dict(call.arguments),
                result=observation.text,
                error=None if failure is None else {"type": kind, "message": failure.message},
                completed=iso(at + observation.seconds),
                working_time=observation.seconds,
                metadata={OURS: {"action": call.rest, "observation": rest_of(observation)}},
            )
            at += observation.seconds

    def _message(self, message: Message, path: str) -> dict[str, Any]:
        id = self.ids.setdefault((path, message), f"{self.conversation.id}.{path}.{len(self.ids)}")
        found: dict[str, Any] = {"id": id, "role": message.role, "content": message.text}
        if message.role == "tool":
            found["tool_call_id"] = message.tool_call_id
        if message.tool_calls:
            found["tool_calls"] = _calls(message.tool_calls)
        return found


def output_of(step: Step) -> dict[str, Any]:
    """Inspect's `ModelOutput` of a call; without choices where there was no reply."""
    if step.reply is None:
        return {"model": step.model, "choices": [], "error": step.error}
    stop = STOPS.get(step.reply.finish_reason, "unknown")
    return {
        "model": step.model,
        "choices": [{"message": _assistant(step.reply, step.model), "stop_reason": stop}],
        "usage": None if step.usage is None else to_inspect(step.usage),
        "time": step.reply.seconds,
    }


def _assistant(reply: Reply, model: str) -> dict[str, Any]:
    found: dict[str, Any] = {"role": "assistant", "content": reply.text, "source": "generate", "model": model}
    return found | ({"tool_calls": _calls(reply.tool_calls)} if reply.tool_calls else {})


def _calls(calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
    return [{"id": c.id, "function": c.name, "arguments": arguments_of(c.arguments)} for c in with_ids(calls)]


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = function_of(tool)
    parameters: Mapping[str, Any] = function.get("parameters") or {}
    kept = {name: parameters[name] for name in ("properties", "required") if name in parameters}
    return {
        "name": str(function.get("name", "tool")),
        "description": str(function.get("description", "")),
        "parameters": {"type": "object", **kept},
    }


def iso(seconds: float) -> str:
    """A time since 1970 as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
