"""A frame at a controlled length, and one next action at turn 2, 5, 10 or 25; question and method are in README.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlm_loop import Budget, Suite
from rlm_loop.agents import Agent
from rlm_loop.dialects.function_calls import Presentation
from rlm_loop.study import Analysis, Study

sys.path.append(str(Path(__file__).resolve().parent))  # its own modules
sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from frames import arms as frames
from one_step import OneStep
from parcels import task

from experiments.shared import chosen, numbers, served, words

#: In what the arms may differ: anything else stops the study before it begins.
DIFFERS = ("injectors",)
#: The lean loop's rule without its sentence on `python`, a tool that is not there.
RULE = (
    'Reply with one tool call only: a JSON object {"name": ..., "arguments": {...}}. Do not guess. When the results '
    "answer the task, call final_answer."
)
TURNS = (2, 5, 10, 25)
CHAINS = 10
#: Declared before the first episode.
PLAN = Analysis(baseline="none", margin=0.0, family=("resolved", "input_tokens"), missing="worst")


def arms(model: Any, only: Sequence[str], max_tokens: int, presentation: Presentation) -> dict[str, Agent]:
    """The lean loop of one step with each frame at each length."""
    same: dict[str, Any] = {
        "model": model,
        "budget": Budget(steps=1),
        "max_tokens": max_tokens,
        "presentation": presentation,
        "system": RULE if presentation == "text" else None,
    }
    return chosen({name: OneStep(**same, injectors=added) for name, added in frames().items()}, only)


def suites(chains: int, turns: Sequence[int]) -> list[Suite]:
    """A suite for each turn: the same chains in each."""
    return [Suite(f"turn-{turn}", tuple(task(chain, turn) for chain in range(chains))) for turn in turns]


def study(
    model: Any = "local",
    chains: int = CHAINS,
    turns: str | int | Sequence[int] = TURNS,
    only: str | Sequence[str] = (),
    seed: int = 0,
    max_tokens: int = 96,
    presentation: Presentation = "text",
    slots: int = 1,
    window: int = 8192,
) -> Study:
    """The grid: 13 arms x 4 turns x 10 chains are 520 episodes of one call; `only` are the arms that are wanted.

    `slots` as in `experiments.shared.served`, `window` in tokens (of each slot).
    """
    return Study(
        name="scaffold_length",
        arms=lambda model, _seed: arms(model, words(only), max_tokens, presentation),
        tasks=suites(chains, numbers(turns)),
        seeds=(seed,),
        model=served(model, slots, window, seed) if slots > 1 else model,
        differs=DIFFERS,
        question="What does a frame cost, and does it make the next action better?",
        analysis=PLAN,
    )
