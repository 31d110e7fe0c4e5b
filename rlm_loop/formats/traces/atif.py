"""ATIF, the Agent Trajectory Interchange Format of Harbor: one JSON document a run, sub-agents within it.

A request is the messages before it; what a turn added to the next request beyond the reply and the observation (the
words around results, injected texts, what compaction cut) is under `extra.rlm_loop` of the turn's step, and so are
causes.  Written is the oldest version that has sub-agents within a document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rlm_loop.formats.traces.calls import OURS, changed, rest_of, rest_of_reply, spoken
from rlm_loop.formats.traces.conversation import AgentConversation, RunConversation, Step
from rlm_loop.formats.traces.usage import known, to_atif
from rlm_loop.messages import Message, Usage
from rlm_loop.traces.trace import body_of, plain
from rlm_loop.traces.versions import __version__

VERSION = "ATIF-v1.7"


def to_trajectory(conversation: RunConversation, path: str | None = None) -> dict[str, Any]:
    """The document of a run, or of the agent at that path within it."""
    agent = conversation.root if path is None else next(a for a in conversation.agents if a.path == path)
    steps = _steps(agent, conversation)
    for number, step in enumerate(steps, 1):
        step["step_id"] = number
    below = [to_trajectory(conversation, child.path) for child in conversation.children(agent.path)]
    ours: dict[str, Any] = {"path": agent.path, "began": agent.began, "ended": agent.ended}
    ours |= known({"start": dict(agent.start) or None, "end": agent.end, "over": agent.over})
    if path is None:
        ours |= {"run": conversation.id, "about": dict(conversation.about)}
        ours |= known({"score": None if conversation.score is None else plain(conversation.score)})
    return known(
        {
            "schema_version": VERSION,
            "session_id": conversation.id,
            "trajectory_id": f"{conversation.id}.{agent.path}",
            "agent": _agent(agent, conversation),
            "steps": steps,
            "final_metrics": _final(agent, len(steps)),
            "extra": {OURS: ours},
            "subagent_trajectories": below or None,
        }
    )


def _agent(agent: AgentConversation, conversation: RunConversation) -> dict[str, Any]:
    tools = [dict(tool) for tool in agent.steps[0].tools] if agent.steps else []
    versions: Mapping[str, Any] = conversation.about.get("versions") or {}
    return known(
        {
            "name": conversation.agent,
            "version": str(versions.get("rlm-loop", __version__)),
            "model_name": agent.steps[0].model if agent.steps else conversation.model,
            "tool_definitions": tools or None,
        }
    )


def _final(agent: AgentConversation, steps: int) -> dict[str, Any]:
    """The sums over the agent's own calls."""
    total = to_atif(sum([step.usage or Usage(None, None) for step in agent.steps if step.reply], Usage.nothing()))
    names = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd", "steps")
    sums = {f"total_{name}": total.get(name) for name in names} | {"total_steps": steps}
    causes: dict[str, int] = {}
    for step in agent.steps:
        for cause, tokens in step.causes.items():
            causes[cause] = causes.get(cause, 0) + tokens
    return known(sums) | {"extra": {OURS: {"input_tokens_by_cause": causes}}}


def _steps(agent: AgentConversation, conversation: RunConversation) -> list[dict[str, Any]]:
    """The brief as steps of its speakers, then a step for each call; one step at least, as the format wants it."""
    brief = agent.steps[0].messages if agent.steps else ()
    found = [_spoken(message, at=agent.began) for message in brief]
    for place, step in enumerate(agent.steps):
        below = [child.path for child in conversation.children(agent.path, step.turn)]
        found.append(_called(step, agent.steps[0], place, below, conversation.id))
    return found or [{"source": "user", "message": conversation.question if not agent.parent else ""}]


def _spoken(message: Message, at: float) -> dict[str, Any]:
    source = {"system": "system", "assistant": "agent"}.get(message.role, "user")
    step: dict[str, Any] = {"source": source, "message": message.text, "timestamp": iso(at)}
    if source == "agent":
        step["llm_call_count"] = 0
    if message != spoken(message.role, message.text) or message.role == "tool":
        step["extra"] = {OURS: {"message": body_of(message)}}
    return step


def _called(step: Step, first: Step, place: int, below: Sequence[str], run: str) -> dict[str, Any]:
    ours: dict[str, Any] = {"turn": step.turn, "ended": step.ended, "started": step.started}
    ours |= known({"seconds": step.seconds, "error": step.error, "charged": None if step.reply else step.charged})
    if step.purpose != "agent":
        ours["purpose"] = step.purpose
    if place:
        ours["request"] = step.request
    if step.tools != first.tools:
        ours["tools"] = [dict(tool) for tool in step.tools]
    calls, results = _acted(step, place)
    if results and below:
        refs = [{"trajectory_id": f"{run}.{path}", "session_id": run} for path in below]
        results[-1]["subagent_trajectory_ref"] = refs
    if step.reply is not None:
        ours["reply"] = rest_of_reply(step.reply)
    return known(
        {
            "source": "agent",
            "timestamp": iso(step.started),
            "model_name": step.model or None,
            "message": "" if step.reply is None else step.reply.text,
            "tool_calls": calls or None,
            "observation": {"results": results} if results else None,
            "metrics": _metrics(step),
            "llm_call_count": 1 if step.usage is None else step.usage.calls,
            "extra": {OURS: ours},
        }
    )


def _acted(step: Step, place: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The tool calls of a step, and one result for each of its actions."""
    calls, results = list[dict[str, Any]](), list[dict[str, Any]]()
    for action, observation, call in step.acts(f"call_{place + 1}"):
        result: dict[str, Any] = {"content": observation.text, "extra": {OURS: {"observation": rest_of(observation)}}}
        if call is None:
            result["extra"][OURS]["action"] = changed(action)
        else:
            result["source_call_id"] = call.id
            written = {"tool_call_id": call.id, "function_name": call.name, "arguments": dict(call.arguments)}
            calls.append({**written, "extra": {OURS: call.rest}})
        results.append(result)
    return calls, results


def _metrics(step: Step) -> dict[str, Any] | None:
    if step.reply is None:
        return None
    found = {} if step.usage is None else to_atif(step.usage)
    ours = known({"input_tokens_by_cause": dict(step.causes), "charged": step.charged})
    return found | {"extra": {**found.get("extra", {}), OURS: ours}}


def iso(seconds: float) -> str:
    """A time since 1970 as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
