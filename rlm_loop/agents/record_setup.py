"""What a trace is told of a run's surroundings, so that it can be driven again without them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rlm_loop.accounting.limits import Budget
from rlm_loop.agents.environment import Environment
from rlm_loop.agents.metered import Metered
from rlm_loop.agents.setup import RunSetup
from rlm_loop.dialects.base import Problem
from rlm_loop.dialects.injectors import Injector
from rlm_loop.repl.cell_calls import CellCall
from rlm_loop.tasks.base import Task
from rlm_loop.tools.function import Tool
from rlm_loop.traces.trace import Trace
from rlm_loop.traces.versions import versions

#: Tools that the loop makes itself; all others are the task's, the workspace's or the caller's.
OURS = ("llm_query", "llm_query_batched", "python", "final_answer")
_INLINE = 1_000  # characters of a result that stand in the event itself; longer ones are stored once


def record_start(
    trace: Trace,
    task: Task,
    agent: str,
    settings: Mapping[str, Any],
    model: str,
    budget: Budget,
    context: Any,
    **more: Any,
) -> None:
    """The first event of a run; `context` is what is known of the context."""
    told = {"settings": settings, "model": model, "budget": budget, "versions": versions(), "context": context}
    trace.start(task=task.id, question=task.question, agent=agent, **told, **more)


def record_problem(
    model: Metered, setup: RunSetup, problem: Problem, place: Environment, told: Iterable[Injector]
) -> None:
    """The line about the context, the tools that are not ours, and what else of the task a later run needs.

    Texts that stand in the first request anyway are named, not repeated.
    """
    action_mode, task = setup.dialect.action_mode, setup.task
    own = [t for t in place.tools.values() if t.name not in OURS]
    model.trace.record(
        "problem",
        node=model.node.path,
        depth=model.node.depth,
        turn=setup.turn_offset,
        context=problem.context,
        inline_chars=len(problem.inline),
        told=[i.name for i in told],
        tools=model.trace.once("tools", tools=[described(t, action_mode == "calls") for t in own]) if own else None,
        repl=place.has_repl,
        workspace=None if place.workspace is None else place.workspace.base,
        setup=model.trace.text(task.setup) if task.setup else None,
        files={name: _sha256(content) for name, content in task.files.items()} if task.files else {},
    )


def described(tool: Tool, schema: bool) -> Mapping[str, Any]:
    """A tool as a model is told of it; its JSON schema only where calls are made by one."""
    told = {"name": tool.name, "description": tool.description, "signature": tool.signature}
    return {**told, "parameters": tool.parameters} if schema else told


def record_calls(model: Metered, calls: Sequence[CellCall]) -> None:
    """What a cell asked of the host, and what it got."""
    made = [{"name": c.name, "asked": c.asked, "outcome": _outcome(model, c.outcome)} for c in calls]
    model.trace.record("cell_calls", node=model.node.path, depth=model.depth, turn=model.turn, calls=made)


def _outcome(model: Metered, outcome: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    text = json.dumps(outcome)
    return {"sha256": model.trace.text(text)} if len(text) > _INLINE else outcome


def _sha256(content: str | bytes) -> str:
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()
