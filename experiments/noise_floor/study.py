"""Three loops in five wordings of equal meaning, each run twice; the method is in README.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlm_loop import Budget
from rlm_loop.agents import Agent
from rlm_loop.study import Analysis, Study

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.noise_floor.paraphrases import WORDINGS
from experiments.shared import LOOPS, numbers, served, spread_tasks

#: `function-repair` is left out: no loop resolves more than one or two of its tasks, so nothing there can vary.
SUITES = {"computation": 4, "tables": 4, "frames": 4, "humaneval": 4}
DIFFERS = ("loop", "reply_format", "system", "tool_presentation")
#: Locked, but not what is asked: it declares the arm of reference, a claim of a difference, and the missing pairs.
PLAN = Analysis(baseline="code-w1", margin=0.0, family=("resolved",), missing="worst")


def arms(steps: int = 5, max_tokens: int = 500) -> dict[str, Agent]:
    """Fifteen arms: `w1` of a loop is the chosen text, `w2` to `w5` are its paraphrases."""
    common: dict[str, Any] = {"budget": Budget(steps=steps), "max_tokens": max_tokens}
    made: dict[str, Agent] = {}
    for loop, make in LOOPS.items():
        for number, text in enumerate(WORDINGS[loop], 1):
            made[f"{loop}-w{number}"] = replace(make(**common), system=text)
    return made


def study(
    model: Any = "local",
    seeds: str | int | Sequence[int] = (0, 1),
    temperature: float | None = None,
    steps: int = 5,
    max_tokens: int = 500,
    slots: int = 1,
) -> Study:
    """The grid; a seed is a run of every arm.  `temperature` is the model's own (0) unless it is given."""
    made = arms(steps, max_tokens)
    if temperature is not None:
        made = {name: replace(agent, temperature=temperature) for name, agent in made.items()}
    return Study(
        name="noise-floor",
        arms=made,
        tasks=spread_tasks(SUITES, "test"),
        seeds=numbers(seeds),
        model=served(model, slots, 8192, 0),
        differs=DIFFERS,
        analysis=PLAN,
        question="How much of what separates the loops is wording, and how much is chance?",
    )
