"""The same MCP tools as function calls and as Python functions; question and method are in README.md."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlm_loop import Budget, LeanAgent, ToolLoopAgent
from rlm_loop.agents import Agent
from rlm_loop.study import Analysis, Study

sys.path.append(str(Path(__file__).resolve().parent))  # its own modules
sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments`

from questions import suite
from servers import first

from experiments.shared import served

#: In what the arms differ; anything else stops the study (`rlm-loop study check`).
DIFFERS = ("loop", "reply_format", "system", "tool_presentation")
#: The function-calling loop's own rule without its sentence on `python`, a tool that it does not have here.
RULE = (
    'Reply with one tool call only: a JSON object {"name": ..., "arguments": {...}}. Do not guess. When the results '
    "answer the task, call final_answer."
)
#: Declared before the first episode.
PLAN = Analysis(baseline="lean", margin=0.0, family=("resolved", "input_tokens"), missing="worst")


def arms(model: Any, count: int, steps: int, max_tokens: int) -> dict[str, Agent]:
    """Both loops, with the same lines on the same tools: a small model makes no native tool calls."""
    same: dict[str, Any] = {
        "model": model,
        "budget": Budget(steps=steps),
        "max_tokens": max_tokens,
        "max_depth": 0,
        "tools": first(count),
    }
    return {"lean": LeanAgent(**same, presentation="text", system=RULE), "code": ToolLoopAgent(**same)}


def study(
    model: Any = "local",
    count: int = 10,
    tasks: int = 14,
    seed: int = 0,
    steps: int = 8,
    max_tokens: int = 256,
    slots: int = 1,
) -> Study:
    """Two arms on 14 tasks: 28 episodes; `count` is the number of tools, `slots` as in `experiments.shared.served`."""
    whole = suite()
    return Study(
        name=f"mcp_as_code-{count}",
        arms=lambda model, _seed: arms(model, count, steps, max_tokens),
        tasks=replace(whole, tasks=whole.tasks[:tasks]),
        seeds=(seed,),
        model=served(model, slots, 6144, seed),
        differs=DIFFERS,
        analysis=PLAN,
    )
