"""The code loop with and without sub-calls, on counts that need reading; the method is in README.md."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments`

from experiments.recursion.families import FAMILIES, family
from experiments.recursion.texts import ASKING, READING
from experiments.shared import chosen, with_window, words
from rlm_loop import Budget, Suite, ToolLoopAgent
from rlm_loop.agents import Agent, SubCalls
from rlm_loop.study import Analysis, Study
from rlm_loop.tasks import Split, get_suite

#: The wordings that did best on dev tasks, by depth; `""`: still to be chosen.
CHOSEN: Mapping[int, str] = {0: "", 1: "", 2: ""}
#: The same for every arm: root and sub-calls together.
BUDGET = Budget(steps=5, tokens=12_000, calls=80)
DIFFERS = ("loop", "system", "tools", "tool_presentation", "recursion")
PLAN = Analysis(baseline="depth-0", family=("resolved",), missing="worst")


def agent(depth: int, wording: str) -> Agent:
    """Return the code loop at a depth, with one of its five wordings."""
    system = (READING if depth == 0 else ASKING)[wording]
    return ToolLoopAgent(
        system=system, budget=BUDGET, max_tokens=400, subcalls=SubCalls(depth=depth, budget=Budget(steps=3))
    )


def suites(split: Split, tasks: int) -> list[Suite]:
    """Return the three families: things, opinions, and the topics of documentation (`long_context/classify`)."""
    topics = get_suite(f"long_context/classify@2k/{split}", tasks=2 * tasks)
    return [*(family(name, split, tasks) for name in FAMILIES), replace(topics, tasks=topics.tasks[:tasks])]


def study(
    model: Any = "local",
    split: Split = "test",
    tasks: int = 20,
    tune: bool = False,
    only: str | Sequence[str] = (),
) -> Study:
    """Depths 0, 1 and 2 on `tasks` tasks a family; with `tune` all wordings of depths 0 and 1 on dev tasks."""
    if tune:
        arms = {f"depth-{d}-{w}": agent(d, w) for d, texts in ((0, READING), (1, ASKING)) for w in texts}
    else:
        arms = {f"depth-{depth}": agent(depth, CHOSEN[depth] or "both") for depth in CHOSEN}
    picked = chosen(arms, words(only))
    return Study(
        name="recursion-tuning" if tune else "recursion",
        arms=picked,
        tasks=suites("dev" if tune else split, tasks),
        seeds=(0,),
        model=with_window(model, 8192, slots=16),
        differs=DIFFERS,
        analysis=PLAN if "depth-0" in picked else None,
        question="Which wording is best at each depth?" if tune else "What do sub-calls add where texts need reading?",
    )
