"""Patches of a task's workspace: made by an agent, and checked before the hidden score is asked.

>>> result = generate_patch(task, retry(LeanAgent(), check=visible_tests()))  # doctest: +SKIP
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from rlm_loop.messages import Usage
from rlm_loop.outcome import Outcome, Stop
from rlm_loop.tasks.base import CheckResult, Task
from rlm_loop.traces.trace import Trace
from rlm_loop.workspace import Workspace, WorkspaceError

Check = Callable[[Workspace], CheckResult]


def patch_of(outcome: Outcome) -> str:
    """The patch of a run; empty without one."""
    return outcome.artifact if isinstance(outcome.artifact, str) else ""


@dataclass(frozen=True)
class Tests:
    """A check that passes where all tests `ids` of the repository do (none: all tests).

    They run in a copy, apart from this process, with the interpreter `python`, for `timeout` seconds at most.
    """

    __test__ = False  # pytest is not to collect it

    ids: tuple[str, ...] = ()
    python: str | None = None
    timeout: float = 300.0

    def __call__(self, workspace: Workspace) -> CheckResult:
        from rlm_loop.workspace.testing import run_tests, summary  # only where tests are run

        run = run_tests(workspace.root, self.ids, python=self.python, timeout=self.timeout)
        feedback = "\n".join(filter(None, [run.complaint, summary(run)]))
        return CheckResult(run.ok, "" if run.ok else feedback, dict(run.results))


def visible_tests(*ids: str, python: str | None = None, timeout: float = 300.0) -> Tests:
    """The check that tests pass, by pytest's node ids (none: all tests of the repository)."""
    return Tests(ids, python, timeout)


def require_check(task: Task, check: Check | None) -> None:
    """Raise `ValueError` where nothing can judge a patch of the task, before a model is asked."""
    if task.workspace is None:
        raise ValueError(f"task {task.id} has no workspace, so there is no patch to make; give it one")
    if check is None and task.check is None:
        raise ValueError(f"task {task.id} has no visible check: give check=, such as visible_tests()")
    if check is not None and check == task.score:
        raise ValueError("check= is the task's hidden score: give a check that may be seen")


def judged(task: Task, check: Check | None, outcome: Outcome) -> CheckResult:
    """Judge a patch in a clean checkout.  Raises `TypeError` for a check that returns no `CheckResult`."""
    check = check or task.check
    assert check is not None, "require_check() was called before"
    assert task.workspace is not None, "require_check() was called before"
    with task.workspace() as space:
        try:
            space.apply(patch_of(outcome))
        except WorkspaceError as error:
            return CheckResult(False, f"the patch does not apply: {error}")
        result: object = check(space)
    if not isinstance(result, CheckResult):
        raise TypeError(f"a check must return a CheckResult, got {type(result).__name__}")
    return result


@dataclass(frozen=True, repr=False)
class PatchResult:
    """A patch, and its run.

    `patch` is the git diff from the start, whatever the stop was.  `left_out` names changed files that are not in it,
    each with the reason; `outcome.artifact` is the whole diff.
    """

    patch: str
    outcome: Outcome
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def stop(self) -> Stop:
        return self.outcome.stop

    @property
    def usage(self) -> Usage:
        """Usage of all attempts."""
        return self.outcome.usage

    @property
    def trace(self) -> str | None:
        return self.outcome.trace

    @property
    def evidence(self) -> Mapping[str, Any]:
        """Return the evidence for the patch; `check` is true, false, or `None` for none.  No hidden score is asked."""
        known = {"check": None, **(self.outcome.evidence or {})}
        return {name: value for name, value in known.items() if name not in ("attempts", "chosen")}

    @property
    def attempts(self) -> Sequence[Mapping[str, Any]]:
        """A description of each of several attempts."""
        return (self.outcome.evidence or {}).get("attempts", ())

    @property
    def chosen(self) -> int | None:
        """Index of the attempt that `patch` is of."""
        return (self.outcome.evidence or {}).get("chosen")

    @property
    def empty(self) -> bool:
        """True where nothing was changed."""
        return not self.patch.strip()

    def __repr__(self) -> str:
        changed = sum(line.startswith("diff --git ") for line in self.patch.splitlines())
        return f"<PatchResult of {changed} files, stop={self.stop.value!r}, {self.outcome.steps} steps>"


class Attempter(Protocol):
    """An agent, or several attempts of agents (`retry`, `escalate`)."""

    def attempt(self, task: Task, *, trace: str | Path | Trace | None = None) -> Outcome: ...


def generate_patch(
    task: Task, agent: Attempter, *, tests: bool = True, trace: str | Path | Trace | None = None
) -> PatchResult:
    """Run the agent on a task with a workspace, under its budgets, and take the diff whatever the stop was.

    With `tests` off, changes of test files are left out of the patch (and named in `left_out`).  The user's copy is
    not touched, and the task's score is not asked.  Raises `ValueError` for a task without a workspace.  Exceptions of
    the agent (`ModelError`, `Interrupted` on Ctrl-C) pass with the partial `PatchResult` as `.result`.
    """
    if task.workspace is None:
        raise ValueError(f"task {task.id} has no workspace, so there is no patch to make; give it one")
    try:
        return _handed_in(task, agent.attempt(task, trace=trace), tests)
    except (Exception, KeyboardInterrupt) as error:
        partial: object = getattr(error, "outcome", None)
        if isinstance(partial, Outcome):
            with contextlib.suppress(AttributeError):  # an exception class with slots keeps what it can
                error.result = _handed_in(task, partial, tests)  # pyright: ignore[reportAttributeAccessIssue]
        raise


def _handed_in(task: Task, outcome: Outcome, tests: bool) -> PatchResult:
    """The result, without test files in its patch where `tests` is off; a patch that does not apply stays as it is."""
    result = PatchResult(patch_of(outcome), outcome)
    if tests or result.empty or task.workspace is None:
        return result
    try:
        with task.workspace() as space:
            space.apply(result.patch)
            patch = space.patch(tests=False)
    except WorkspaceError:
        return result
    return replace(result, patch=patch.text, left_out=patch.left_out)
