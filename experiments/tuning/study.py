"""Texts for three loops by equal effort: eight candidates each, successive halving; the method is in README.md."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rlm_loop import Budget, Suite
from rlm_loop.study import Results, Study, StudyError, load_study
from rlm_loop.tasks import get_suite

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import served, spread
from experiments.tuning.texts import CANDIDATES

HERE = Path(__file__).parent
#: Tasks of each suite's dev split in the first round, and further ones in the second.
FIRST = {"computation": 3, "tables": 2, "frames": 3, "function-repair": 2, "humaneval": 2}
SECOND = {"computation": 8, "tables": 6, "frames": 8, "function-repair": 6, "humaneval": 8}
KEPT = 3  # candidates of a loop that are in the second round


def tasks_of(round: int) -> list[Suite]:
    """The tasks of a round, at equal distances through each suite, so that every level is there; none is in both."""
    found: list[Suite] = []
    for name, first in FIRST.items():
        suite = get_suite(f"{name}/dev")
        opening = spread(suite.tasks, first)
        rest = [task for task in suite.tasks if task not in opening]
        chosen = opening if round == 1 else spread(rest, SECOND[name])
        found.append(Suite(suite.name, tuple(chosen), suite.description, suite.licence))
    return found


def best(results: Results, loop: str) -> list[str]:
    """The candidates of a loop that go on: most tasks resolved, then fewest prompt and output tokens.

    Raises `StudyError` where the first round is not finished.
    """
    arms = list(CANDIDATES[loop])
    rows = {arm: [row for row in results.rows if row["arm"] == arm] for arm in arms}
    wanted = sum(FIRST.values())
    if short := [arm for arm in arms if sum(row["resolved"] is not None for row in rows[arm]) < wanted]:
        raise StudyError(f"the first round is not finished for {short[0]}: run it with --set round=1 first")

    def worth(arm: str) -> tuple[int, int]:
        spent = sum((row["input_tokens"] or 0) + (row["output_tokens"] or 0) for row in rows[arm])
        return -sum(row["resolved"] for row in rows[arm]), spent

    return sorted(arms, key=worth)[:KEPT]


def study(
    model: Any = "local", round: int = 1, loops: str = "code,lean,react", seed: int = 0, slots: int = 1, first: str = ""
) -> Study:
    """Round 1 or 2 of the tuning; round 2 reads the results of the first from `first` (default: those committed)."""
    common: dict[str, Any] = {"budget": Budget(steps=5), "max_tokens": 500, "seed": seed}
    results = load_study(first or HERE / "results" / "round1") if round == 2 else None
    arms = {
        arm: CANDIDATES[loop][arm](**common)
        for loop in loops.split(",")
        for arm in (CANDIDATES[loop] if results is None else best(results, loop))
    }
    return Study(
        name=f"tuning-round{round}",
        arms=arms,
        tasks=tasks_of(round),
        seeds=(seed,),
        model=served(model, slots, 8192, seed),
        question="Which text does each loop do best with, when all loops are tuned with the same effort?",
    )
