"""What tells a patch that works from one that does not, before the task's own hidden score is asked.

A check gets a checkout with the patch applied, and nothing else of the task: it cannot see the score.  Using the score
in its place (an oracle) is a choice that the caller has to name, and that every result records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rlm_loop.outcome import Outcome
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.base import CheckResult, Task
from rlm_loop.traces.trace import plain
from rlm_loop.workspace import Workspace, WorkspaceError

Check = Callable[[Workspace], CheckResult]

#: What an oracle says of a patch that does not pass: not why, since the hidden tests would be told with it.
NOT_YET = "The task is not solved by it."


def patch_of(outcome: Outcome) -> str:
    """The patch that a run came to; empty where there is none."""
    return outcome.artifact if isinstance(outcome.artifact, str) else ""


@dataclass(frozen=True)
class Tests:
    """A check that runs tests of the repository that are there to see: it passes where all of `ids` do (none: all).

    They run in a copy, apart from this process.  `python` is the interpreter that has what they need, `timeout` is in
    seconds.  The feedback is what a model is told that runs them itself.
    """

    __test__ = False  # its name is no reason for pytest to collect it

    ids: tuple[str, ...] = ()
    python: str | None = None
    timeout: float = 300.0

    def __call__(self, workspace: Workspace) -> CheckResult:
        from rlm_loop.workspace.testing import run_tests, summary  # only where tests are run

        run = run_tests(workspace.root, self.ids, python=self.python, timeout=self.timeout)
        said = "\n".join(filter(None, [run.complaint, summary(run)]))
        return CheckResult(run.ok, "" if run.ok else said, dict(run.results))


def visible_tests(*ids: str, python: str | None = None, timeout: float = 300.0) -> Tests:
    """The check that tests pass, by pytest's node ids (none: all that the repository has)."""
    return Tests(ids, python, timeout)


@dataclass(frozen=True)
class Judge:
    """Who judges the attempts of one task: `check`, else the task's own visible one, else (`oracle`) its score."""

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
        """Judge the patch of an attempt.  Raises `TypeError` for a check that returns anything but a `CheckResult`."""
        patch = patch_of(outcome)
        if self.oracle:
            score = task.judge(Attempt(outcome.answer, patch, outcome.answered, isolation=outcome.isolation))
            if score.resolved not in (True, False):  # nothing judged it
                raise ValueError(f"nothing can judge task {task.id} here ({score.reason}): give check= instead")
            return CheckResult(score.resolved, "" if score.resolved else NOT_YET)
        check = self.check or task.check
        if check is None or task.workspace is None:
            raise ValueError(f"task {task.id} has nothing to check a patch with")
        with task.workspace() as space:
            try:
                space.apply(patch)
            except WorkspaceError as error:
                return CheckResult(False, f"the patch does not apply: {error}")
            found: object = check(space)
        if not isinstance(found, CheckResult):
            raise TypeError(
                f"a check returns a CheckResult, not {type(found).__name__}; a task's score is used with oracle=True"
            )
        return found

    def settings(self) -> dict[str, Any]:
        """What identifies it, as JSON types."""
        name = getattr(self.check, "__qualname__", None)
        return {"check": name if isinstance(name, str) else plain(self.check), "oracle": self.oracle}


def passed_tests(found: CheckResult | None) -> int:
    """How many tests passed."""
    return 0 if found is None else sum(result == "passed" for result in found.tests.values())
