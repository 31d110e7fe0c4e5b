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
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.base import CheckResult, Task
from rlm_loop.traces.trace import Trace
from rlm_loop.traces.values import plain
from rlm_loop.workspace import Workspace, WorkspaceError

Check = Callable[[Workspace], CheckResult]

#: Feedback of an oracle: no reason, since it would tell the hidden tests.
NOT_YET = "The task is not solved by it."


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


@dataclass(frozen=True)
class Judge:
    """Judges attempts by `check`, else by the task's own visible check, else (`oracle`) by its hidden score."""

    check: Check | None = None
    oracle: bool = False

    def __post_init__(self) -> None:
        if self.check is not None and self.oracle:
            raise ValueError("give check= or oracle=True, not both: an oracle is the task's own score")

    def ready(self, task: Task) -> None:
        """Raise `ValueError` where the task gives nothing to judge by, before a model is asked."""
        if task.workspace is None:
            raise ValueError(f"task {task.id} has no workspace, so there is no patch to make; give it one")
        if self.check is None and task.check is None and not self.oracle:
            raise ValueError(
                f"task {task.id} has no visible check: give check=, or oracle=True to let its hidden score decide"
            )
        if self.check is not None and self.check == task.score:
            raise ValueError("check= is the task's hidden score; say oracle=True if that is meant")

    def __call__(self, task: Task, outcome: Outcome) -> CheckResult:
        """Judge a patch in a clean checkout.  Raises `TypeError` for a check that returns no `CheckResult`."""
        patch = patch_of(outcome)
        if self.oracle:
            score = task.judge(Attempt(outcome.answer, patch, outcome.answered, isolation=outcome.isolation))
            if score.resolved not in (True, False):
                raise ValueError(f"nothing can judge task {task.id} here ({score.reason}): give check= instead")
            return CheckResult(score.resolved, "" if score.resolved else NOT_YET)
        check = self.check or task.check
        assert check is not None, "ready() was called before"
        assert task.workspace is not None, "ready() was called before"
        with task.workspace() as space:
            try:
                space.apply(patch)
            except WorkspaceError as error:
                return CheckResult(False, f"the patch does not apply: {error}")
            result: object = check(space)
        if not isinstance(result, CheckResult):
            raise TypeError(
                f"a check returns a CheckResult, not {type(result).__name__}; a task's score is used with oracle=True"
            )
        return result

    def settings(self) -> dict[str, Any]:
        """The settings that identify it, as JSON types."""
        name = getattr(self.check, "__qualname__", None)
        return {"check": name if isinstance(name, str) else plain(self.check), "oracle": self.oracle}


@dataclass(frozen=True, repr=False)
class PatchResult:
    """A patch, and its run.

    - `patch`: the git diff from the start, empty for no change, whatever the `stop` was.
    - `left_out`: changed files that are not in it, each with the reason; `outcome.artifact` is the whole diff.
    - `evidence`: `check` (true, false, or `None` for no check) and `oracle` (the hidden score judged); never the score.
    - `attempts`: a description of each of several attempts; `chosen` is the index of the one that `patch` is of.
    - `usage` and `seconds` (wall time) cover all attempts.
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
        """True where the task's hidden score judged the attempts."""
        return bool(self.evidence["oracle"])

    @property
    def empty(self) -> bool:
        """True where nothing was changed."""
        return not self.patch.strip()

    def __repr__(self) -> str:
        changed = sum(line.startswith("diff --git ") for line in self.patch.splitlines())
        return f"<PatchResult of {changed} files, stop={self.stop.value!r}, {self.outcome.steps} steps>"


def result_of(outcome: Outcome) -> PatchResult:
    """The result of an outcome, which may be a partial one."""
    known = dict(outcome.evidence or {})
    attempts, chosen = tuple(known.pop("attempts", ())), known.pop("chosen", None)
    evidence = {**known, "check": known.get("check"), "oracle": bool(known.get("oracle", False))}
    return PatchResult(
        patch_of(outcome),
        outcome.stop,
        outcome.usage,
        evidence,
        outcome,
        trace=outcome.trace,
        seconds=outcome.seconds,
        attempts=attempts,
        chosen=chosen,
    )


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
        return _handed_in(task, result_of(agent.attempt(task, trace=trace)), tests)
    except (Exception, KeyboardInterrupt) as error:
        partial: object = getattr(error, "outcome", None)
        if isinstance(partial, Outcome):
            with contextlib.suppress(AttributeError):  # an exception class with slots keeps what it can
                error.result = _handed_in(task, result_of(partial), tests)  # pyright: ignore[reportAttributeAccessIssue]
        raise


def _handed_in(task: Task, result: PatchResult, tests: bool) -> PatchResult:
    """The result without test files in its patch; a patch that cannot be taken apart stays as it is."""
    if tests or result.empty or task.workspace is None:
        return result
    try:
        with task.workspace() as space:
            space.apply(result.patch)
            patch = space.patch(tests=False)
    except WorkspaceError:
        return result
    return replace(result, patch=patch.text, left_out=patch.left_out)
