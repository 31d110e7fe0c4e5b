"""One thing of a loop changed at a time, on 24 tasks of test splits; what for is in README.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlm_loop import Budget, DirectAgent, Suite
from rlm_loop.agents import Agent
from rlm_loop.dialects import FormatReminder
from rlm_loop.study import Study

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.answer_contract.study import WINDOW, strict
from experiments.shared import LOOPS, REACT_PLAIN, served, spread_tasks, words
from experiments.shared import chosen as wanted

SUITES = {"computation": 5, "tables": 5, "frames": 5, "humaneval": 5, "function-repair": 4}
DIFFERS = ("loop", "reply_format", "system", "tool_presentation", "data", "injectors", "budget")
#: Said after every turn; the second says nothing, so its arm is the same arm again.
NEUTRAL = {"proceed": "Proceed.", "empty": ""}


def tasks() -> list[Suite]:
    """24 tasks at equal distances through five test splits."""
    return spread_tasks(SUITES, "test")


def arms(steps: int = 5, max_tokens: int = 500) -> dict[str, Agent]:
    """The arms by name; one with a setting in brackets differs from the loop before them in that alone."""
    common: dict[str, Any] = {"budget": Budget(steps=steps), "max_tokens": max_tokens}
    made: dict[str, Agent] = {"direct": DirectAgent(window=WINDOW, max_depth=0, **common)}
    for loop, make in LOOPS.items():
        agent = made[loop] = make(**common)
        made[f"{loop}[repeated=none]"] = replace(agent, budget=Budget(steps=steps, repeated=None))
        made[f"{loop}[malformed=1]"] = replace(agent, budget=Budget(steps=steps, malformed=1))
    made["lean[text_answers=no]"] = strict(**common)
    for name, text in NEUTRAL.items():
        made[f"lean[says={name}]"] = replace(made["lean"], injectors=(FormatReminder(text, f"says_{name}"),))
    made["react[example=no]"] = replace(made["react"], system=REACT_PLAIN)
    return made


def pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """What is compared, declared before the run: an arm and the loop that it is a change of; a loop and `direct`."""
    loops = [name for name in names if "[" not in name and name != "direct"]
    return [(n, n.partition("[")[0]) for n in names if "[" in n] + [(loop, "direct") for loop in loops]


def study(
    model: Any = "local",
    seed: int = 0,
    steps: int = 5,
    max_tokens: int = 500,
    only: str | Sequence[str] = (),
    slots: int = 1,
) -> Study:
    """The grid; `only` are the arms that are wanted.  The other frameworks are in `peers.py`."""
    return Study(
        name="referee-arms",
        arms=wanted(arms(steps, max_tokens), words(only)),
        tasks=tasks(),
        seeds=(seed,),
        model=served(model, slots, 8192, seed),
        differs=DIFFERS,
        question="Which choices of ours, and which of other frameworks, do the differences between loops hang on?",
    )
