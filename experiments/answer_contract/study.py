"""Five arms on 128 tasks of five test splits, with one answer contract for all; the method is in README.md."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rlm_loop import Budget, DirectAgent, ReActAgent
from rlm_loop.agents import Agent
from rlm_loop.study import Analysis, Study

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import LEAN, LOOPS, served, spread_tasks

#: The suites and how many tasks of each are taken at most; `function-repair` has 16 in its test split.
SUITES = {"humaneval": 40, "frames": 40, "function-repair": 20, "tables": 16, "computation": 16}
#: In what the arms differ; anything else stops the study (`rlm-loop study check`).
DIFFERS = ("loop", "reply_format", "system", "tool_presentation", "data")
#: As README.md says: declared before the run.
PLAN = Analysis(baseline="react", margin=0.03, family=("resolved",), missing="worst")
#: Characters of files and contexts that a loop without a REPL is shown, for every suite alike.
WINDOW = 6000


def strict(**common: Any) -> Agent:
    """The lean loop that only a call of `final_answer` ends: a reply without a call is told that it called nothing."""
    given: dict[str, Any] = {"system": LEAN, "presentation": "text"}
    return ReActAgent(form="calls", scaffold=(), **given, **common)


def arms(steps: int = 5, max_tokens: int = 500) -> dict[str, Agent]:
    """The arms by name."""
    common: dict[str, Any] = {"budget": Budget(steps=steps), "max_tokens": max_tokens}
    return {
        "direct": DirectAgent(window=WINDOW, max_depth=0, **common),
        "lean": LOOPS["lean"](**common),
        "lean-strict": strict(**common),
        "code": LOOPS["code"](**common),
        "react": LOOPS["react"](**common),
    }


def study(
    model: Any = "local",
    seed: int = 0,
    steps: int = 5,
    max_tokens: int = 500,
    slots: int = 1,
) -> Study:
    """The grid; `slots` as in `experiments.shared`."""
    return Study(
        name="answer-contract",
        arms=arms(steps, max_tokens),
        tasks=spread_tasks(SUITES, "test"),
        seeds=(seed,),
        model=served(model, slots, 8192, seed),
        differs=DIFFERS,
        analysis=PLAN,
        question="Is there an effect of the loop left where one answer contract holds for every loop?",
    )
