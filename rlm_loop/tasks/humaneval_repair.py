"""HumanEval solutions with one slip each, to be found and mended in a git checkout.

Every published solution has one mutation that makes its tests fail.  The mutations are recorded in a data file, so that
loading the suite runs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from functools import partial

from rlm_loop.outcome import Score
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.base import Suite, Task
from rlm_loop.tasks.humaneval import LICENCE, HumanEvalProblem, by_its_tests, candidates, read_problems
from rlm_loop.tasks.mutation import Mutation, apply
from rlm_loop.tasks.packaged import packaged
from rlm_loop.tools.processes import refuse_full_disk
from rlm_loop.workspace import Workspace, WorkspaceError

FILE = "solution.py"


def humaneval_repair(
    *,
    ids: Collection[str] | None = None,
    path: str | os.PathLike[str] | None = None,
    timeout: float = 10.0,
    bugs: Mapping[str, Mutation] | None = None,
) -> Suite:
    """Return a task for each problem: find and mend the slip in `solution.py`; the artifact is the git diff.

    Resolved when all of the problem's tests pass after the diff is applied to a fresh copy.  `ids` names the tasks that
    are wanted, `bugs` has the mutation of each problem (default: the recorded ones).  `path` and `timeout` are as in
    `humaneval`.
    """
    known = recorded() if bugs is None else bugs
    problems = [p for p in read_problems(path) if p.task_id in known and (ids is None or p.task_id in ids)]
    tasks = tuple(_task(problem, known[problem.task_id], timeout) for problem in problems)
    return Suite("humaneval-repair", tasks, "mend one slip in a file of a git checkout", LICENCE)


def recorded() -> dict[str, Mutation]:
    """The recorded bugs, by task."""
    return {name: Mutation(**row) for name, row in packaged("humaneval_mutations.json")["mutations"].items()}


def score(buggy: str, problem: HumanEvalProblem, timeout: float, attempt: Attempt) -> Score:
    """Apply the patch to a fresh copy and run the tests.  Raises only what is the machine's fault.

    An attempt that had no checkout at all (its artifact is `None`) is judged by its answer, if that is the source of
    the whole module: so a strategy without tools can take part.
    """
    if attempt.artifact is None and isinstance(attempt.answer, str):
        readings = list(candidates(problem, attempt.answer))
        return by_its_tests(problem, readings, timeout, attempt.isolation, by="answer")
    if not isinstance(attempt.artifact, str) or not attempt.artifact.strip():
        return Score(False, 0.0, "nothing was changed")
    with Workspace({FILE: buggy}) as space:
        try:
            space.apply(attempt.artifact)
        except WorkspaceError as error:
            refuse_full_disk()
            return Score(False, 0.0, f"the patch does not apply: {error}"[:300])
        solution = space.root / FILE
        if not solution.is_file() or solution.is_symlink():
            return Score(False, 0.0, f"{FILE} is gone")
        try:  # latin-1 would hide a broken encoding: what is not UTF-8 is no Python source here
            source = solution.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            return Score(False, 0.0, f"{FILE} is not UTF-8: {error}"[:300])
        return by_its_tests(problem, [("", source)], timeout, attempt.isolation, space.root, by="patch")


def _task(problem: HumanEvalProblem, bug: Mutation, timeout: float) -> Task:
    buggy = apply(problem.solution, bug)
    return Task(
        id=problem.task_id.replace("HumanEval", "HumanEvalRepair"),
        question=f"`{problem.entry_point}` in {FILE} does not do what its docstring says. "
        "Find the bug and fix the file.",
        score=partial(score, buggy, problem, timeout),
        expected=problem.solution,
        workspace=partial(Workspace, {FILE: buggy}),
        inline=f"{FILE}:\n{buggy}",
        needs_repl=False,
        facts={"file": FILE},
    )
