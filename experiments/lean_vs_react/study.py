"""Five ways to run the same small model through the same tasks; the question and the method are in README.md."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rlm_loop import Budget, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.agents import Agent
from rlm_loop.dialects import Nudge
from rlm_loop.study import Study
from rlm_loop.tasks import Split

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import first_tasks, served

SUITES = ("computation", "tables", "function-repair")
#: In what the arms differ; anything else stops the study (`rlm-loop study check`).
DIFFERS = ("loop", "reply_format", "system", "injectors", "tool_presentation")


def arms(model: Any, steps: int = 5, max_tokens: int = 400) -> dict[str, Agent]:
    """The arms.  Model, budget, tools and how these are listed are the same in all; each differs from its neighbour
    in one thing."""
    same: dict[str, Any] = {"model": model, "budget": Budget(steps=steps), "max_tokens": max_tokens, "max_depth": 1}
    # Small models make no native tool calls: all arms with tools list them as text, and read calls written as text.
    listed: dict[str, Any] = {**same, "presentation": "text"}
    return {
        "code": ToolLoopAgent(**same),
        "lean": LeanAgent(**listed),
        "lean+nudge": LeanAgent(**listed, injectors=(Nudge(),)),
        "react-native": ReActAgent(**listed, form="calls"),
        "react-text": ReActAgent(**listed, form="text"),
    }


def study(
    model: Any = "local",
    split: Split = "test",
    tasks: int = 12,
    seed: int = 0,
    steps: int = 5,
    max_tokens: int = 400,
    slots: int = 1,
) -> Study:
    """The grid: five arms on `tasks` tasks of each of three suites.  Seconds depend on the machine, tokens do not.

    `slots` as in `experiments.shared.served`.
    """
    return Study(
        name=f"lean_vs_react-{split}",
        arms=lambda model, _seed: arms(model, steps, max_tokens),
        tasks=first_tasks(dict.fromkeys(SUITES, tasks), split),
        seeds=(seed,),
        model=served(model, slots, 6144, seed),
        differs=DIFFERS,
    )
