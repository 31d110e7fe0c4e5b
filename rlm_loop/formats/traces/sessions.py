"""Hugging Face's session traces: JSON Lines that the Hub shows as a conversation.

A session is a header, then a message a line, in the order in which they were first sent
(https://huggingface.co/docs/hub/session-traces-format).  The header may have anything besides: it has what the run came
to and where its tokens went.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlm_loop.formats.traces.calls import replied, with_ids
from rlm_loop.formats.traces.conversation import RunConversation
from rlm_loop.formats.traces.usage import known
from rlm_loop.messages import Message, Reply, ToolCall

HARNESS = "rlm-loop"


def session_lines(conversation: RunConversation) -> Iterator[dict[str, Any]]:
    """The header and the messages of the root's conversation; compaction's own calls are left out."""
    yield _header(conversation)
    steps = [step for step in conversation.root.steps if step.purpose == "agent"]
    by_turn = {step.turn: step for step in steps}
    for message in dict.fromkeys(message for step in steps for message in step.messages):
        step = by_turn.get(message.turn)
        spoken_by = step if step is not None and message.role == "assistant" else None
        at = conversation.root.began if step is None else step.ended
        yield _line(message, at, spoken_by.model if spoken_by else None, spoken_by.reply if spoken_by else None)
    if steps and (last := steps[-1]).reply is not None:
        yield _line(replied(last.reply), last.ended, last.model, last.reply)


def _header(conversation: RunConversation) -> dict[str, Any]:
    score, usage = conversation.score, conversation.usage
    judged: dict[str, Any] = {}
    if score is not None:
        judged = {"resolved": score.resolved, "value": score.value, "reason": score.reason}
    spent = {"input": usage.input_tokens, "output": usage.output_tokens, "cache_read": usage.cache_read_tokens}
    return known(
        {
            "type": "session",
            "harness": HARNESS,
            "id": conversation.id,
            "name": " ".join(conversation.question.split())[:80] or conversation.task,
            "agent": conversation.agent,
            "model": conversation.model,
            "task": conversation.task,
            "episode": dict(conversation.episode) or None,
            "stop": conversation.stop,
            "score": known(judged) or None,
            "calls": len(conversation.steps),
            "sub_agents": len(conversation.agents) - 1,
            "tokens": known(spent),
            "input_tokens_by_cause": conversation.causes,
        }
    )


def _line(message: Message, at: float, model: str | None, reply: Reply | None) -> dict[str, Any]:
    reasoning = None if reply is None else reply.extra.get("reasoning_content")
    told: dict[str, Any] = {"role": message.role, "content": message.text}
    told |= known(
        {
            "reasoningContent": reasoning if isinstance(reasoning, str) else None,
            "toolCalls": [_call(call) for call in with_ids(message.tool_calls)] or None,
            "toolCallId": message.tool_call_id,
            "timestamp": round(at * 1000),
            "model": model,
        }
    )
    return {"type": "message", "message": told}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "function": {"name": call.name, "arguments": call.arguments}}
