"""ATIF read back: documents of ours whole, those of others with what the format itself says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.actions import Action, Observation
from rlm_loop.agents.past_run import action_of
from rlm_loop.errors import install_line
from rlm_loop.formats.traces.calls import (
    OURS,
    action_from,
    observed,
    ours_of,
    reply_from,
    score_from,
    spoken,
    text_of,
)
from rlm_loop.formats.traces.conversation import (
    AgentConversation,
    RunConversation,
    Step,
    answered,
    ending,
    kept_of,
    requested,
)
from rlm_loop.formats.traces.errors import FormatError
from rlm_loop.formats.traces.usage import from_atif
from rlm_loop.messages import Message, ToolCall
from rlm_loop.traces.reader import message_of

if TYPE_CHECKING:
    import atif

#: Versions that can be read: later ones may mean other things by the same names.
READABLE = tuple(f"ATIF-v1.{minor}" for minor in range(9))


def from_trajectory(data: Any, path: str | Path) -> RunConversation:
    """The run of an ATIF document, given as its JSON value; `path` is for messages.

    Raises `FormatError` with the place of what is wrong, `ImportError` where the extra `atif` is not installed.
    """
    try:
        import atif
        from pydantic import ValidationError
    except ImportError as error:
        raise ImportError(f"reading ATIF needs the package atif: {install_line('atif')}") from error
    version = data.get("schema_version") if isinstance(data, Mapping) else None
    if version not in READABLE:
        raise FormatError(f"{path} has schema_version {version!r}; read are {READABLE[0]} to {READABLE[-1]}")
    try:
        return _conversation(atif.Trajectory.model_validate(data))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise FormatError(f"{path}: {where}: {first['msg'].removeprefix('Value error, ')}") from error
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise FormatError(f"{path}: what is under {OURS} is damaged ({type(error).__name__}: {error})") from error


def _conversation(found: atif.Trajectory) -> RunConversation:
    ours = ours_of(found.extra)
    agents = list(_agents(found, str(ours.get("path", "0"))))
    asked = next((text_of(step.message) for step in found.steps if step.source == "user"), "")
    about = ours.get("about") or {
        "task": found.session_id or found.trajectory_id or "trajectory",
        "question": asked,
        "agent": found.agent.name,
        "model": found.agent.model_name or "unknown",
        "versions": {found.agent.name: found.agent.version},
    }
    run = str(ours.get("run") or found.session_id or found.trajectory_id or "0")
    return RunConversation(run, about, tuple(agents), score_from(ours.get("score")))


def _agents(found: atif.Trajectory, path: str, turn: int = 1) -> Iterator[AgentConversation]:
    """An agent and all below it; `turn` is the one of its parent that asked for it."""
    ours = ours_of(found.extra)
    times = [seconds_of(step.timestamp) for step in found.steps if step.timestamp]
    began, ended = (times[0], times[-1]) if times else (0.0, 0.0)
    steps, turns = _steps(found)
    start, end, over = ours.get("start") or {}, ours.get("end"), ours.get("over")
    if not ours:
        end = ending(steps)
        if "." in path:
            start = {"parent": path.rpartition(".")[0], "turn": turn, "kind": "agent", "model": found.agent.model_name}
            over = {"ok": True, "error": None}
    yield AgentConversation(path, tuple(steps), start, end, over, ours.get("began", began), ours.get("ended", ended))
    for number, below in enumerate(found.subagent_trajectories or (), 1):
        place = str(ours_of(below.extra).get("path", f"{path}.{number}"))
        yield from _agents(below, place, turns.get(below.trajectory_id or "", 1))


def _steps(found: atif.Trajectory) -> tuple[list[Step], dict[str, int]]:
    """The calls, and by trajectory in which turn each sub-agent was asked for.

    The messages of a call are those said before it, unless it says otherwise.
    """
    said, steps, turns = list[Message](), list[Step](), dict[str, int]()
    tools = tuple(found.agent.tool_definitions or ())
    for step in found.steps:
        ours, text = ours_of(step.extra), text_of(step.message)
        if step.source != "agent" or step.llm_call_count == 0:
            role = "assistant" if step.source == "agent" else step.source
            cause = "task" if role == "user" and not steps else ""
            told = spoken(role, text, turn=len(steps), cause=cause)
            said.append(message_of(ours["message"]) if "message" in ours else told)
            continue
        purpose = str(ours.get("purpose", "agent"))
        messages = requested(ours["request"], purpose, steps) if "request" in ours else tuple(said)
        model = step.model_name or found.agent.model_name or ""
        made = _step(step, ours, messages, model, len(steps) + 1)
        made = replace(made, kept=kept_of(messages, purpose, steps), tools=tuple(ours.get("tools", tools)))
        steps.append(made)
        said += _echo(step, made)
        for result in step.observation.results if step.observation else ():
            turns |= {ref.trajectory_id or "": made.turn for ref in result.subagent_trajectory_ref or ()}
    return steps if ours_of(found.extra) else answered(steps), turns


def _step(step: atif.Step, ours: Mapping[str, Any], messages: tuple[Message, ...], model: str, turn: int) -> Step:
    actions, observations = _acted(step)
    counted = ours_of(step.metrics.extra if step.metrics else None)
    at = seconds_of(step.timestamp)
    return Step(
        int(ours.get("turn", turn)),
        str(ours.get("purpose", "agent")),
        model,
        messages,
        None if ours and "reply" not in ours else _reply(step, ours),
        0,
        actions,
        observations,
        ours.get("error"),
        causes=counted.get("input_tokens_by_cause") or {},
        charged=counted.get("charged") or ours.get("charged"),
        started=ours.get("started", at),
        ended=ours.get("ended", at),
        seconds=ours.get("seconds"),
    )


def _reply(step: atif.Step, ours: Mapping[str, Any]) -> Any:
    usage = None if step.metrics is None else from_atif(step.metrics.model_dump(), step.llm_call_count or 1)
    rest: dict[str, Any] = dict(ours.get("reply") or {})
    if not ours and step.reasoning_content:
        rest["extra"] = {"reasoning_content": step.reasoning_content}
    return reply_from(text_of(step.message), usage, rest, () if ours else _native(step))


def _native(step: atif.Step) -> list[ToolCall]:
    calls = step.tool_calls or ()
    return [ToolCall(c.tool_call_id, c.function_name, json.dumps(c.arguments, ensure_ascii=False)) for c in calls]


def _acted(step: atif.Step) -> tuple[tuple[Action, ...], tuple[Observation, ...]]:
    """What was done, in the order of the results where they say it; a call without a result has an empty one."""
    calls = {call.tool_call_id: call for call in step.tool_calls or ()}
    left = list(step.tool_calls or ())
    pairs = list[tuple[Action, Observation]]()
    for result in step.observation.results if step.observation else ():
        ours, text = ours_of(result.extra), text_of(result.content)
        if "action" in ours:
            action = action_of(ours["action"])
        elif (call := calls.get(result.source_call_id or "")) is not None or (left and "observation" in ours):
            call = left[0] if "observation" in ours else call
            assert call is not None
            if call in left:
                left.remove(call)
            rest = ours_of(call.extra) or None
            action = action_from(call.function_name, call.arguments, call.tool_call_id, rest)
        else:
            continue  # feedback that no call asked for: it is in the next request
        pairs.append((action, observed(text, ours.get("observation"))))
    for call in left:
        action = action_from(call.function_name, call.arguments, call.tool_call_id, ours_of(call.extra) or None)
        pairs.append((action, Observation()))
    return tuple(a for a, _ in pairs), tuple(o for _, o in pairs)


def _echo(step: atif.Step, made: Step) -> Iterator[Message]:
    """What the next request has after a step of others."""
    yield spoken("assistant", text_of(step.message), turn=made.turn, calls=_native(step))
    for result in step.observation.results if step.observation else ():
        text, id = text_of(result.content), result.source_call_id
        yield spoken("tool" if id else "user", text, turn=made.turn, cause="tool_result", id=id)


def seconds_of(timestamp: str | None) -> float:
    """Seconds since 1970 of an ISO 8601 time; 0 where there is none."""
    return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp() if timestamp else 0.0
