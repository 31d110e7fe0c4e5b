"""The grid of `study.py` with a scripted ORACLE in the place of the model: what depth does to reach and cost.

The oracle answers every question about the text that it is shown exactly, by code.  It is no language model, and its
rate of resolved tasks says nothing about one: it is the ceiling that the loop itself leaves.

    rlm-loop study run experiments/recursion_depth/oracle_study.py --jobs 2 --out runs/recursion_depth_oracle
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlm_loop import Budget, DirectAgent, ToolLoopAgent
from rlm_loop.agents import Agent
from rlm_loop.study import Study
from rlm_loop.tasks import Split, get_suite

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.recursion_depth.oracle import Oracle
from experiments.shared import words

FAMILIES = ("needle", "records", "pairs", "classify")
SIZES = ("8k", "32k", "128k", "1M")
WINDOW = 4_096  # tokens of 4 characters


def arms() -> dict[str, Agent]:
    """`direct` and depth 0, 1 and 2; only depth 2 hands larger pieces to sub-agents."""
    budget = Budget(steps=4, cell_seconds=300.0)
    found: dict[str, Agent] = {"direct": DirectAgent(model=Oracle(window=WINDOW), window=12_000)}
    for depth in (0, 1, 2):
        model: Any = Oracle(window=WINDOW, levels=max(1, depth))
        found[f"depth-{depth}"] = ToolLoopAgent(model=model, max_depth=depth, repl="subprocess", budget=budget)
    return found


def study(
    split: Split = "test",
    families: str | Sequence[str] = FAMILIES,
    sizes: str | Sequence[str] = SIZES,
    tasks: int = 3,
    seed: int = 0,
) -> Study:
    """4 families x 4 sizes x 4 arms x `tasks`.  `--set sizes=10M` takes minutes, and its traces hold the whole text."""
    names = [f"long_context/{family}@{size}/{split}" for size in words(sizes) for family in words(families)]
    suites = [get_suite(name, tasks=2 * tasks) for name in names]
    return Study(
        f"recursion_depth-oracle-{split}", lambda _model, _seed: arms(), suites, (seed,), Oracle(window=WINDOW)
    )
