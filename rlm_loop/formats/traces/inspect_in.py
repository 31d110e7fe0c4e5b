"""Inspect's log format, read: every sample is a run, ours whole, those of others with what the log says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlm_loop.errors import install_line
from rlm_loop.formats.traces.calls import action_from, observed, ours_of, score_from
from rlm_loop.formats.traces.conversation import AgentConversation, RunConversation, Step, answered, ending, kept_of
from rlm_loop.formats.traces.errors import FormatError
from rlm_loop.formats.traces.inspect_transcript import Reading, message_from
from rlm_loop.messages import Message, Reply, ToolCall
from rlm_loop.outcome import Score

_LIMITS = {
    "message": "steps",
    "turn": "steps",
    "time": "seconds",
    "working": "seconds",
    "token": "tokens",
    "cost": "cost",
}
_RIGHT: Mapping[Any, float] = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, True: 1.0, False: 0.0}


def from_log(path: str | Path) -> tuple[RunConversation, ...]:
    """The runs of an Inspect log, `.eval` or `.json`.

    Raises `FormatError` for a file that Inspect cannot read and for a log without samples, `ImportError` where the
    extra `inspect` is not installed.
    """
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise ImportError(f"Inspect's logs need the package inspect_ai: {install_line('inspect')}") from error
    try:
        log = read_eval_log(str(path), resolve_attachments=True)
    except Exception as error:  # of zip, JSON, compression or validation: a file may be anything
        said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        raise FormatError(
            f"{path} cannot be read as a log of Inspect ({type(error).__name__}: {said[:300]})"
        ) from error
    if not log.samples:
        raise FormatError(f"{path} has no samples (its status is {log.status!r}); a log of headers holds no runs")
    found: list[RunConversation] = []
    for number, sample in enumerate(log.samples, 1):
        try:
            found.append(_conversation(sample, log))
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            where = f"sample {number} ({sample.id}, epoch {sample.epoch})"
            raise FormatError(f"{path}: {where} is damaged ({type(error).__name__}: {error})") from error
    return tuple(found)


def _conversation(sample: Any, log: Any) -> RunConversation:
    ours: Mapping[str, Any] = ours_of(sample.metadata)
    agents = Reading(log.eval.model).agents(sample.events) if sample.events else []
    if not any(agent.steps for agent in agents):
        agents = [_from_messages(sample, log.eval.model)]
    if ours:
        return RunConversation(str(ours["run"]), ours["about"], tuple(agents), score_from(ours["score"]))
    root = agents[0]
    end = ending(root.steps)
    stop = "failed" if sample.error else _LIMITS.get(sample.limit.type, "steps") if sample.limit else None
    if stop is not None:
        reason = sample.error.message if sample.error else f"the limit of {sample.limit.limit:g} is reached"
        end = {**(end or {"answer": None, "answer_form": None}), "stop": stop, "reason": reason}
    if end is not None:
        end = {**end, "seconds": sample.total_time or 0.0, "working_seconds": sample.working_time or 0.0}
    agents[0] = replace(root, end=end)
    asked = sample.input if isinstance(sample.input, str) else "\n".join(m.text for m in sample.input)
    about = {
        "task": str(sample.id),
        "question": asked,
        "agent": log.eval.solver or "inspect",
        "model": log.eval.model,
        "versions": dict(log.eval.packages),
        "episode": {"study": log.eval.run_id, "suite": log.eval.task, "task": str(sample.id), "seed": sample.epoch},
    }
    return RunConversation(sample.uuid or f"{sample.id}-{sample.epoch}", about, tuple(agents), _judged(sample))


def _judged(sample: Any) -> Score | None:
    """The first scorer's score: a letter, a number or a truth; anything else is not judged here."""
    for name, score in (sample.scores or {}).items():
        value = score.value
        number: Any = _RIGHT.get(value) if isinstance(value, (str, bool)) else value
        if not isinstance(number, (int, float)) or number != number:
            number = None
        said = f"{name}: {score.explanation or value}"[:500]
        return Score(None if number is None else number == 1, number or 0.0, said)
    return None


def _from_messages(sample: Any, model: str) -> AgentConversation:
    """The agent of a sample without events: a step for each reply; what a call cost is not known then."""
    said, steps = list[Message](), list[Step]()
    for place, message in enumerate(sample.messages):
        told = message_from(message, place)
        if message.role == "assistant":
            reply = Reply(told.text, told.tool_calls)
            name = message.model or model
            steps.append(Step(len(steps) + 1, "agent", name, tuple(said), reply, kept_of(tuple(said), "agent", steps)))
        elif message.role == "tool" and steps:
            call = next((c for c in _calls_of(steps[-1]) if c.id == message.tool_call_id), None)
            name = call.name if call else message.function or "tool"
            action = action_from(name, json.loads(call.arguments) if call else {}, message.tool_call_id, None)
            seen = (*steps[-1].observations, observed(told.text, None))
            steps[-1] = replace(steps[-1], actions=(*steps[-1].actions, action), observations=seen)
        said.append(told)
    return AgentConversation("0", tuple(answered(steps)))


def _calls_of(step: Step) -> tuple[ToolCall, ...]:
    return () if step.reply is None else step.reply.tool_calls
