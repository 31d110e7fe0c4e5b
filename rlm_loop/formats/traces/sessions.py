"""Hugging Face's session traces: JSON Lines that the Hub shows as a conversation, and a study as a dataset of them.

A session is a header, then a message a line, in the order in which they were first sent
(https://huggingface.co/docs/hub/session-traces-format).  The header may have anything besides: it has what the run came
to and where its tokens went.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rlm_loop.formats.traces.conversation import RunConversation
from rlm_loop.formats.traces.dataset_card import dataset_card
from rlm_loop.formats.traces.usage import known
from rlm_loop.messages import Message, Reply, ToolCall
from rlm_loop.study.results import Results

HARNESS = "rlm-loop"


def write_session(conversation: RunConversation, path: Path) -> None:
    """Write a run as one session."""
    _write(path, session_lines(conversation))


def write_dataset(results: Results, episodes: Sequence[tuple[RunConversation, str]], folder: Path) -> list[Path]:
    """Write a study as a dataset: its rows, a session for each run that has a trace, and the card `README.md`."""
    sessions = [(conversation, folder / "sessions" / f"{name}.jsonl") for conversation, name in episodes]
    for conversation, path in sessions:
        write_session(conversation, path)
    rows, card = folder / "results.jsonl", folder / "README.md"
    _write(rows, (dict(row) for row in results.rows))
    card.write_text(dataset_card(results, sessions=len(sessions)), encoding="utf-8")
    return [card, rows, *(path for _, path in sessions)]


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
        said = Message("assistant", tool_calls=last.reply.tool_calls)
        yield _line(said, last.ended, last.model, last.reply, text=last.reply.text)


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


def _line(
    message: Message, at: float, model: str | None, reply: Reply | None, *, text: str | None = None
) -> dict[str, Any]:
    reasoning = None if reply is None else reply.extra.get("reasoning_content")
    told: dict[str, Any] = {"role": message.role, "content": message.text if text is None else text}
    told |= known(
        {
            "reasoningContent": reasoning if isinstance(reasoning, str) else None,
            "toolCalls": [_call(call, n) for n, call in enumerate(message.tool_calls, 1)] or None,
            "toolCallId": message.tool_call_id,
            "timestamp": round(at * 1000),
            "model": model,
        }
    )
    return {"type": "message", "message": told}


def _call(call: ToolCall, place: int) -> dict[str, Any]:
    return {"id": call.id or f"call_{place}", "function": {"name": call.name, "arguments": call.arguments}}


def _write(path: Path, values: Iterator[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(value, ensure_ascii=False) + "\n" for value in values]
    path.write_text("".join(lines), encoding="utf-8", errors="backslashreplace")
