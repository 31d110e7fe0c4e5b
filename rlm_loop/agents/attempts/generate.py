"""From a task and an agent to a patch."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from rlm_loop.agents.attempts.result import PatchResult, result_of
from rlm_loop.outcome import Outcome
from rlm_loop.tasks.base import Task
from rlm_loop.traces.trace import Trace
from rlm_loop.workspace import WorkspaceError


class Attempter(Protocol):
    """Any agent, or what is put around one (`retry`, `escalate`, `best_of`)."""

    def attempt(self, task: Task, *, trace: str | Path | Trace | None = None) -> Outcome: ...


def generate_patch(
    task: Task, agent: Attempter, *, tests: bool = True, trace: str | Path | Trace | None = None
) -> PatchResult:
    """Run the agent on a task with a workspace, under its budgets, and take the diff whatever the stop was.

    With `tests` off, changes of test files are left out of the patch (and named in `left_out`).  The user's copy is
    not touched, and the task's score is not asked.  Raises `ValueError` for a task without a workspace.  What the
    agent raises (`ModelError`, `Interrupted` on Ctrl-C ...) goes on up with the partial patch: its `.result` is the
    `PatchResult` until then.
    """
    if task.workspace is None:
        raise ValueError(f"task {task.id} has no workspace, so there is no patch to make; give it one")
    try:
        return _handed_in(task, result_of(agent.attempt(task, trace=trace)), tests)
    except (Exception, KeyboardInterrupt) as error:
        partial: object = getattr(error, "outcome", None)
        if isinstance(partial, Outcome):
            with contextlib.suppress(AttributeError):  # an exception class with slots keeps what it can
                error.result = _handed_in(task, result_of(partial), tests)  # pyright: ignore[reportAttributeAccessIssue]
        raise


def _handed_in(task: Task, result: PatchResult, tests: bool) -> PatchResult:
    """The result without test files in its patch; what cannot be taken apart stays as it is."""
    if tests or result.empty or task.workspace is None:
        return result
    try:
        with task.workspace() as space:
            space.apply(result.patch)
            patch = space.patch(tests=False)
    except WorkspaceError:
        return result
    return replace(result, patch=patch.text, left_out=patch.left_out)
