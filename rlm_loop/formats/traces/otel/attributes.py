"""The attributes of a span: an agent, a call of a model, a cell or a call of a tool.

Usage is on the calls of models alone, since readers add up what all spans of a trace say.  What the conventions have no
name for is under `rlm_loop`: `rlm_loop.tokens.<cause>` are the input tokens of a call by cause, and sum to them.
"""

from __future__ import annotations

from typing import Any

from rlm_loop.actions import Observation
from rlm_loop.formats.traces.calls import Called
from rlm_loop.formats.traces.conversation import AgentConversation, RunConversation, Step
from rlm_loop.formats.traces.otel.messages import of_reply, of_request, text_of
from rlm_loop.formats.traces.usage import known, to_otel
from rlm_loop.messages import Message

#: Providers by the beginning of a model's name, where the convention has a word of its own; else the beginning itself.
PROVIDERS = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}


def provider_of(model: str) -> str | None:
    """Who answers under a model's name; `None` where the name does not say it."""
    first = min((model.partition(mark)[0] for mark in "/:" if mark in model), key=len, default="")
    return PROVIDERS.get(first, first) or None


def of_agent(agent: AgentConversation, conversation: RunConversation, content: bool) -> dict[str, Any]:
    """A run, a sub-agent, or a single sub-call: this one is no agent, and has no operation."""
    single = agent.start.get("kind") == "completion"
    end, model = agent.end or {}, str(agent.start.get("model") or conversation.model)
    found: dict[str, Any] = {
        "gen_ai.conversation.id": conversation.id,
        "rlm_loop.node": agent.path,
        "rlm_loop.stop": end.get("stop"),
    }
    if not single:
        found |= {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": conversation.agent}
        found["gen_ai.request.model"] = model
        found["gen_ai.provider.name"] = provider_of(model)
    if content:
        found |= {"rlm_loop.question": _asked(agent, conversation), "rlm_loop.answer": text_of(_answer(agent))}
        found["rlm_loop.stop_reason"] = end.get("reason") or None
    if not agent.parent:
        found["rlm_loop.task"] = conversation.task
        found |= {f"rlm_loop.episode.{name}": value for name, value in conversation.episode.items()}
    return known(found)


def of_call(step: Step, conversation: RunConversation, content: bool) -> dict[str, Any]:
    """One request to a model and its reply."""
    found: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": conversation.id,
        "gen_ai.provider.name": provider_of(step.model),
        "gen_ai.request.model": step.model or None,
        "rlm_loop.turn": step.turn,
        "rlm_loop.purpose": step.purpose,
    }
    found |= {f"rlm_loop.tokens.{cause.replace(':', '.')}": tokens for cause, tokens in step.causes.items()}
    if step.usage is not None:
        found |= to_otel(step.usage)
    if content:
        found |= of_request(step.messages, step.tools)
    if step.reply is not None:
        reason = step.reply.finish_reason
        found |= {"gen_ai.response.finish_reasons": (reason,)}
        if content:
            found |= of_reply(step.reply)
    unread = [seen.failure.kind for _, seen, call in step.acts("") if seen.failure and call is None]
    if unread:  # what a parser or a check refused: there is no span of a tool that could say so
        found["rlm_loop.failures"] = tuple(unread)
    return known(found)


def of_tool(call: Called, observation: Observation, conversation: RunConversation, content: bool) -> dict[str, Any]:
    """A cell or a call of a tool, and its result as the model was told of it."""
    found: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.conversation.id": conversation.id,
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call.id,
    }
    if content:
        arguments = text_of(dict(call.arguments))
        found |= {"gen_ai.tool.call.arguments": arguments, "gen_ai.tool.call.result": observation.text}
    return found


def of_score(conversation: RunConversation, content: bool) -> dict[str, Any]:
    """How the run was judged, as the event `gen_ai.evaluation.result`; empty where nothing judged it."""
    score = conversation.score
    if score is None or score.resolved is None:
        return {}
    found = {
        "gen_ai.evaluation.name": "resolved",
        "gen_ai.evaluation.score.value": score.value,
        "gen_ai.evaluation.score.label": "resolved" if score.resolved else "not resolved",
        "gen_ai.evaluation.explanation": score.reason if content and score.reason else None,
    }
    return known(found)


def _asked(agent: AgentConversation, conversation: RunConversation) -> str | None:
    """The question of the run, or the prompt of a sub-call: the user's part of its first request."""
    if not agent.parent:
        return conversation.question or None
    said: list[Message] = [m for step in agent.steps[:1] for m in step.messages if m.role == "user"]
    return said[0].text if said else None


def _answer(agent: AgentConversation) -> Any:
    if agent.end is not None:
        return agent.end.get("answer")
    replies = [step.reply.text for step in agent.steps if step.reply is not None]
    return replies[-1] if replies and agent.start.get("kind") == "completion" else None
