"""Long contexts: a loop that reads them by code, at recursion depth 0, 1 and 2, and the same model asked directly.

The question and the method are in README.md; `oracle_study.py` runs the same grid with a scripted oracle.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlm_loop import Budget, DirectAgent, Suite, ToolLoopAgent
from rlm_loop.agents import Agent, Rules
from rlm_loop.study import Study
from rlm_loop.tasks import Split, get_suite

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import chosen, served, words

FAMILIES = ("needle", "records", "identifiers", "needles", "chain")
SIZES = ("8k", "128k")
ARMS = ("direct", "depth-0")
#: In what the arms differ; anything else stops the study (`rlm-loop study check`).
DIFFERS = ("loop", "system", "data", "tools", "tool_presentation", "budget", "recursion")


def arms(
    model: Any, only: Sequence[str] = ARMS, *, steps: int = 4, max_tokens: int = 256, window: int = 8_000
) -> dict[str, Agent]:
    """The arms by name.  Model, question and budget are the same; `window` is what `direct` sees, in characters."""
    same: dict[str, Any] = {"model": model, "max_tokens": max_tokens}
    every: dict[str, Agent] = {"direct": DirectAgent(**same, budget=Budget(steps=1), window=window)}
    for depth in (0, 1, 2):
        # A sub-call costs the root nothing but its turn, so calls and time are limited for the whole tree.
        whole: dict[str, Any] = {} if depth == 0 else {"calls": 60, "seconds": 300}
        limit = Budget(steps=steps, cell_seconds=30.0, **whole)
        every[f"depth-{depth}"] = ToolLoopAgent(**same, max_depth=depth, rules=Rules(require_code=True), budget=limit)
    return chosen(every, only)


def suites(split: Split, families: Sequence[str], sizes: Sequence[str], tasks: int) -> list[Suite]:
    """`tasks` of each family and size, small texts first: one round through the suites covers all families."""
    found = [get_suite(f"long_context/{f}@{s}/{split}", tasks=2 * tasks) for s in sizes for f in families]
    return [replace(suite, tasks=suite.tasks[:tasks]) for suite in found]


def study(
    model: Any = "local",
    split: Split = "test",
    families: str | Sequence[str] = FAMILIES,
    sizes: str | Sequence[str] = SIZES,
    only: str | Sequence[str] = ARMS,
    tasks: int = 2,
    seed: int = 0,
    steps: int = 4,
    max_tokens: int = 256,
    window: int = 8_000,
    slots: int = 1,
) -> Study:
    """The grid: arms x families x sizes x `tasks`; several are given as a list, or as text with commas.

    As it stands: 5 families x 2 sizes x 2 arms x 2 tasks are 40 episodes; `slots` as in `experiments.shared.served`.
    """
    return Study(
        name=f"recursion_depth-{split}",
        arms=lambda model, _seed: arms(model, words(only), steps=steps, max_tokens=max_tokens, window=window),
        tasks=suites(split, words(families), words(sizes), tasks),
        seeds=(seed,),
        model=served(model, slots, 4096, seed),
        differs=DIFFERS,
    )
