"""Compare the cost of four frames for a real model, with the same tools on the same tasks; see README.md."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments`

from experiments.shared import spread_tasks, with_window
from rlm_loop import Budget, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.study import Analysis, Study
from rlm_loop.tasks import Split

SUITES = {"computation": 10, "frames": 10}
DIFFERS = ("loop", "reply_format", "system", "injectors", "tool_presentation")
PLAN = Analysis(baseline="lean", family=("input_tokens",), missing="worst")


def study(model: Any = "local", split: Split = "test", steps: int = 25) -> Study:
    """The package's default texts; every row has the tokens of each cause, and of each turn in its trace."""
    common: dict[str, Any] = {"budget": Budget(steps=steps), "max_tokens": 500, "max_depth": 0}
    return Study(
        name="overhead",
        arms={
            "lean": LeanAgent(**common),
            "code": ToolLoopAgent(**common),
            "react": ReActAgent(**common),
            "react-calls": ReActAgent(form="calls", **common),
        },
        tasks=spread_tasks(SUITES, split),
        seeds=(0,),
        model=with_window(model, 8192),
        differs=DIFFERS,
        analysis=PLAN,
        question="How many prompt tokens does each loop spend on the same tasks?",
    )
