"""Which texts to use: every candidate wording on tasks of the dev splits, same model, same limits.

rlm-loop study run experiments/wording/study.py --out runs/wording-code
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlm_loop import Budget, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.study import Study
from rlm_loop.tasks.base import Suite
from rlm_loop.tasks.registry import get_suite

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import served
from experiments.wording.texts import CALLS, CODE, REACT


def spread(suite: Suite, count: int) -> Suite:
    """`count` tasks at equal distances, so that every level of difficulty is there."""
    step = len(suite) / count
    return Suite(suite.name, tuple(suite.tasks[int((i + 0.5) * step)] for i in range(count)))


def study(
    model: Any = "local",
    kind: str = "code",
    per_suite: int = 2,
    only: str = "",
    slots: int = 1,
    first: int = 0,
    steps: int = 6,
    max_tokens: int = 300,
    suites: str = "computation,tables,function-repair",
) -> Study:
    """`kind` is `code`, `calls`, `react` or `all`; `per_suite` tasks of each dev split, at equal distances;
    `first` takes the first so many instead; `only` names arms (c1,c5); an arm `-require` asks once
    for code where a reply has none.

    With `slots` the model answers that many episodes side by side (and batching may change a text).
    """
    common: dict[str, Any] = {"budget": Budget(steps=steps), "max_tokens": max_tokens, "cell_timeout": 20.0}
    arms: dict[str, Any] = {}
    if kind in ("code", "all"):
        arms |= {name: ToolLoopAgent(system=text, **common) for name, text in CODE.items()}
        arms |= {
            f"{name}-require": ToolLoopAgent(system=text, require_code=True, **common) for name, text in CODE.items()
        }
    if kind in ("calls", "all"):
        arms |= {name: LeanAgent(system=text, presentation="text", **common) for name, text in CALLS.items()}
        arms |= {
            f"{name}-constrained": LeanAgent(system=text, presentation="constrained", **common)
            for name, text in CALLS.items()
        }
    if kind in ("react", "all"):
        arms |= {name: ReActAgent(system=text, **common) for name, text in REACT.items()}
    if not arms:
        raise ValueError(f"kind is code, calls, react or all, not {kind!r}")
    if only:
        wanted = only.split(",")
        arms = {n: a for n, a in arms.items() if n in wanted or n.split("-")[0] in wanted}
    halves = [
        spread(get_suite(f"{n}/dev"), per_suite)
        if not first
        else replace(s := get_suite(f"{n}/dev"), tasks=s.tasks[:first])
        for n in suites.split(",")
    ]
    return Study(f"wording-{kind}", arms, halves, model=served(model, slots, 8192, 0))
