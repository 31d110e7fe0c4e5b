"""Three loops on 100 tasks with one small local model; the question and the method are in README.md."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rlm_loop import Budget, DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.agents import Agent
from rlm_loop.study import Analysis, Study
from rlm_loop.tasks import Split

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import first_tasks, served

#: The suites and how many tasks of each are taken at most, in the order in which they take turns.
SUITES = {"computation": 16, "tables": 16, "function-repair": 16, "humaneval": 52}
#: In what the arms differ; anything else stops the study (`rlm-loop study check`).
DIFFERS = ("loop", "reply_format", "system", "injectors", "tool_presentation")
#: By what the first report judged, written down after it had begun; a run from here on is locked to it.
PLAN = Analysis(baseline="react-text", margin=0.03, family=("resolved", "input_tokens"), missing="worst")


def arms(model: Any, steps: int = 5, max_tokens: int = 400, direct: bool = False) -> dict[str, Agent]:
    """The lean loop, ReAct as text, and the code-block loop, as in `../lean_vs_react`; `direct` adds no loop at all."""
    same: dict[str, Any] = {"model": model, "budget": Budget(steps=steps), "max_tokens": max_tokens, "max_depth": 1}
    # Small models make no native tool calls: tools are listed as text, and calls written as text are read.
    listed: dict[str, Any] = {**same, "presentation": "text"}
    loops: dict[str, Agent] = {
        "lean": LeanAgent(**listed),
        "react-text": ReActAgent(**listed, form="text"),
        "code": ToolLoopAgent(**same),
    }
    return {**loops, "direct": DirectAgent(**same)} if direct else loops


def study(
    model: Any = "local",
    split: Split = "test",
    tasks: int | None = None,
    seed: int = 0,
    steps: int = 5,
    max_tokens: int = 400,
    slots: int = 1,
    direct: bool = False,
) -> Study:
    """The grid: three arms on 100 tasks; `slots` as in `experiments.shared.served`.

    `direct` is for new runs: the recorded one has three arms, and a fourth would make it another study.
    """
    return Study(
        name=f"headline-{split}",
        arms=lambda model, _seed: arms(model, steps, max_tokens, direct),
        tasks=first_tasks(SUITES, split, tasks),
        seeds=(seed,),
        model=served(model, slots, 6144, seed),
        differs=(*DIFFERS, "data") if direct else DIFFERS,
        analysis=PLAN,
    )
