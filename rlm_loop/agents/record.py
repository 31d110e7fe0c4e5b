"""Events of a run's trace besides its turns: the start, the task, and what actions did."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rlm_loop.accounting.limits import Budget
from rlm_loop.agents.meter import Meter
from rlm_loop.dialects.base import ActionMode, Problem
from rlm_loop.dialects.injectors import Injector
from rlm_loop.repl.base import CellCall
from rlm_loop.tasks.base import Task
from rlm_loop.tools.function import Tool
from rlm_loop.traces.trace import Trace
from rlm_loop.traces.versions import versions
from rlm_loop.workspace import Workspace

#: Tools that the loop makes itself; all others are the task's, the workspace's or the caller's.
OURS = ("llm_query", "llm_query_batched", "python", "final_answer")
_INLINE = 1_000  # characters of a result that stand in the event itself; longer ones are stored once


class RunLog:
    """Record of what the actions of one run did: for the trace, for log lines and for hooks."""

    def __init__(self, meter: Meter) -> None:
        self._meter, self.hooks = meter, meter.hooks
        self.node = meter.node.path

    def about(self) -> dict[str, Any]:
        """Fields of a log line."""
        trace, turn = self._meter.trace, self._meter.turn
        steps = trace.steps_left(self.node, turn)
        return {"run": trace.run, "task": trace.task, "turn": turn, "steps_remaining": steps}

    def tree(self, tree: str, patch: str) -> None:
        """Record a new state of the workspace: git's id of its files, and the patch from the start."""
        self._meter.trace.patch(tree, patch, **self._where())

    def approval(self, **asked: Any) -> None:
        """Record what `approve` was asked and what it answered."""
        self._meter.trace.record("approval", **self._where(), **asked)

    def cell_calls(self, calls: Sequence[CellCall]) -> None:
        """Record what a cell asked of the host, and what it got."""
        made = [{"name": c.name, "asked": c.asked, "outcome": self._outcome(c.outcome)} for c in calls]
        self._meter.trace.record("cell_calls", **self._where(), calls=made)

    def problem(
        self,
        task: Task,
        problem: Problem,
        tools: Iterable[Tool],
        brief: Iterable[Injector],
        mode: ActionMode,
        repl: bool,
        workspace: Workspace | None,
    ) -> None:
        """Record the line about the context, the tools that are not ours, and what else a later run needs of the task.

        Texts that stand in the first request anyway are named, not repeated.
        """
        trace = self._meter.trace
        own = [t for t in tools if t.name not in OURS]
        trace.record(
            "problem",
            **self._where(),
            context=problem.context,
            inline_chars=len(problem.inline),
            told=[i.name for i in brief] if brief else [],
            tools=trace.once("tools", tools=[described(t, mode == "calls") for t in own]) if own else None,
            repl=repl,
            workspace=None if workspace is None else workspace.base,
            setup=trace.text(task.setup) if task.setup else None,
            files={name: _sha256(content) for name, content in task.files.items()} if task.files else {},
        )

    def _where(self) -> dict[str, Any]:
        return {"node": self.node, "depth": self._meter.node.depth, "turn": self._meter.turn}

    def _outcome(self, outcome: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        text = json.dumps(outcome)
        return {"sha256": self._meter.trace.text(text)} if len(text) > _INLINE else outcome


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
    """Write the first event of a run; `context` is what is known of the context."""
    about = {"settings": settings, "model": model, "budget": budget, "versions": versions(), "context": context}
    trace.start(task=task.id, question=task.question, agent=agent, **about, **more)


def described(tool: Tool, schema: bool) -> Mapping[str, Any]:
    """A tool as a model is told of it; its JSON schema only where calls are made by one."""
    about = {"name": tool.name, "description": tool.description, "signature": tool.signature}
    return {**about, "parameters": tool.parameters} if schema else about


def _sha256(content: str | bytes) -> str:
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()
