"""How much to tell of a context: two loops with four lengths of the line about it; the method is in README.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlm_loop import Budget
from rlm_loop.agents import Agent
from rlm_loop.study import Study

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import numbers, served, spread_tasks
from experiments.tuning.best import chosen

SUITES = {"frames": 24}
LOOPS = ("code", "lean")
DOSES = (30, 60, 120, 240)
DIFFERS = ("loop", "reply_format", "system", "tool_presentation", "data")


def arms(texts: str = "tuned", round2: str = "", steps: int = 5, max_tokens: int = 500) -> dict[str, Agent]:
    """The loops; the study crosses them with the doses."""
    common: dict[str, Any] = {"budget": Budget(steps=steps), "max_tokens": max_tokens}
    loops = chosen(texts, round2=round2)
    return {loop: loops[loop].make(**common) for loop in LOOPS}


def study(
    model: Any = "local",
    texts: str = "tuned",
    round2: str = "",
    doses: str | int | Sequence[int] = DOSES,
    seed: int = 0,
    steps: int = 5,
    max_tokens: int = 500,
    slots: int = 1,
) -> Study:
    """The grid on tasks of the dev split, since a default is chosen by it."""
    return Study(
        name="context-dose",
        arms=arms(texts, round2, steps, max_tokens),
        tasks=spread_tasks(SUITES, "dev"),
        factors={"context_tokens": list(numbers(doses))},
        seeds=(seed,),
        model=served(model, slots, 8192, seed),
        differs=DIFFERS,
        question="How many tokens about a data frame does a loop need before it reads it?",
    )
