"""From a task and an agent to a patch, with what is known for it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from rlm_loop.agents.attempts.checks import patch_of
from rlm_loop.messages import Usage
from rlm_loop.outcome import Outcome, Stop
from rlm_loop.tasks.base import Task
from rlm_loop.traces.trace import Trace
from rlm_loop.workspace import WorkspaceError


@dataclass(frozen=True, repr=False)
class PatchResult:
    """A patch, and how it came about.

    `patch` is the git diff from the start as one would hand it in, empty for no change; it is there whatever the
    `stop` was.  `left_out` names changed files that are not in it, with the reason (a test file, say); the whole diff
    is `outcome.artifact`.  `evidence` is
    what speaks for it: where attempts were judged, what the check said of this one (`check`: true, false, or `None` for
    no check), and whether the judge was the task's hidden score
    (`oracle`).  It never holds the score itself.  `attempts` describes each of several attempts, `chosen` is the index
    of the one that `patch` is of.  `usage` covers all of them, `seconds` is wall time, `trace` the file.
    """

    patch: str
    stop: Stop
    usage: Usage
    evidence: Mapping[str, Any]
    outcome: Outcome
    trace: str | None = None
    seconds: float = 0.0
    attempts: Sequence[Mapping[str, Any]] = ()
    chosen: int | None = None
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def oracle(self) -> bool:
        """Whether the task's hidden score had a say in it."""
        return bool(self.evidence["oracle"])

    @property
    def empty(self) -> bool:
        """Nothing was changed."""
        return not self.patch.strip()

    def __repr__(self) -> str:
        changed = sum(line.startswith("diff --git ") for line in self.patch.splitlines())
        return f"<PatchResult of {changed} files, stop={self.stop.value!r}, {self.outcome.steps} steps>"


def result_of(outcome: Outcome) -> PatchResult:
    """The result of an outcome, which may be a partial one."""
    known = outcome.evidence or {}
    return PatchResult(
        patch=patch_of(outcome),
        stop=outcome.stop,
        usage=outcome.usage,
        evidence={
            **{name: value for name, value in known.items() if name not in ("attempts", "chosen", "conversation")},
            "check": known.get("check"),
            "oracle": bool(known.get("oracle", False)),
        },
        outcome=outcome,
        trace=outcome.trace,
        seconds=outcome.seconds,
        attempts=tuple(known.get("attempts", ())),
        chosen=known.get("chosen"),
    )


class Attempter(Protocol):
    """Any agent, or what is put around one (`retry`, `escalate`)."""

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
