"""How much of a thought prompt, how often a nudge: doses on the lean loop; question and method are in README.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlm_loop import Budget, LeanAgent, Suite
from rlm_loop.agents import Agent
from rlm_loop.dialects import Injector, Nudge
from rlm_loop.dialects.function_calls import Presentation
from rlm_loop.study import Study
from rlm_loop.tasks import Split

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.peer_texts import THOUGHT, Every, Sized
from experiments.shared import numbers, served, suite_named

#: In what the arms may differ: anything else stops the study before it begins.
DIFFERS = ("injectors",)
#: Characters of the thought prompt; mellea's own has 208.
SIZES = (52, 208, 832)
#: After every how many turns the nudge is said.
EVERY = (2, 1)


def doses(sizes: Sequence[int] = SIZES, turns: Sequence[int] = EVERY) -> dict[str, tuple[Injector, ...]]:
    """What each arm adds to the lean loop: the factor of the study, and the only one."""
    return {
        "lean": (),
        **{f"thought-{size}": (Sized(THOUGHT, size),) for size in sizes},
        **{f"nudge-every-{k}": (Every(k, Nudge()),) for k in turns},
    }


def arms(
    model: Any,
    added: dict[str, tuple[Injector, ...]],
    steps: int = 4,
    max_tokens: int = 256,
    presentation: Presentation = "text",
) -> dict[str, Agent]:
    """The arms: one lean loop, and the same with each dose."""
    lean = LeanAgent(
        model=model,
        budget=Budget(steps=steps),
        max_tokens=max_tokens,
        max_depth=1,
        presentation=presentation,
    )
    return {name: replace(lean, injectors=injectors) for name, injectors in added.items()}


def suites(split: Split, tasks: int, files: Sequence[int]) -> list[Suite]:
    """The first `tasks` of this split of `tables`, once for each seed of the files that they ask about."""
    found = [suite_named("tables", split, seed=seed) for seed in files]
    return [
        replace(suite, name=f"tables-{seed}/{split}", tasks=suite.tasks[:tasks])
        for seed, suite in zip(files, found, strict=True)
    ]


def study(
    model: Any = "local",
    split: Split = "test",
    tasks: int = 14,
    files: str | Sequence[int] = (0, 1),
    sizes: str | Sequence[int] = SIZES,
    turns: str | Sequence[int] = EVERY,
    seed: int = 0,
    steps: int = 4,
    max_tokens: int = 256,
    presentation: Presentation = "text",
    slots: int = 1,
) -> Study:
    """The grid: six arms on 28 tasks are 168 episodes; several numbers are given as a list, or as text with commas.

    `files` are seeds of the tables, `sizes` characters of the thought prompt, `turns` how often the nudge comes.
    `slots` as in `experiments.shared.served`.
    """
    added = doses(numbers(sizes), numbers(turns))
    return Study(
        name=f"token_overhead-{split}",
        arms=lambda model, _seed: arms(model, added, steps, max_tokens, presentation),
        tasks=suites(split, tasks, numbers(files)),
        seeds=(seed,),
        model=served(model, slots, 4096, seed),
        differs=DIFFERS,
    )
