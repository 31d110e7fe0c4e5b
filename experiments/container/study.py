"""Five containers for the same code, one reply each; the method is in README.md."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments`

from experiments.container.containers import CONTAINERS, WORDS, Container
from experiments.shared import spread_tasks
from rlm_loop import Budget, Suite
from rlm_loop.models import LocalModel
from rlm_loop.study import Analysis, Study

#: Tasks of the test splits; `computation` has 16 there, and those of HumanEval are the 40 of `answer_contract`.
SUITES = {"humaneval": 40, "frames": 36, "computation": 16}
#: Tasks of each suite that the second and third words are tried on.
PARAPHRASED = 10
#: Declared before the run: each container against the fence, for a difference in either direction.
PLAN = Analysis(baseline="fence", family=("resolved",), missing="worst")


def study(model: Any = "local", words: int = 0) -> Study:
    """The grid with one of the three words (0, 1, 2); the second and third have 30 tasks.

    A local model reads each prompt whole: the same prompt then always gets the same reply.
    """
    if words not in range(len(WORDS)):
        raise ValueError(f"words must be 0, 1 or 2, got {words!r}")
    common: dict[str, Any] = {"budget": Budget(steps=1), "max_tokens": 500, "max_depth": 0}
    suites = spread_tasks(SUITES, "test")
    return Study(
        name=f"container-words-{words}" if words else "container",
        arms={name: Container(container=name, words=words, **common) for name in CONTAINERS},
        tasks=[_few(suite) for suite in suites] if words else suites,
        seeds=(0,),
        model=LocalModel(model, context_size=4096, prompt_cache=False) if isinstance(model, str) else model,
        analysis=PLAN,
        question="What does the container cost that a reply carries its code in?",
    )


def _few(suite: Suite) -> Suite:
    return replace(suite, tasks=suite.tasks[:: max(1, len(suite) // PARAPHRASED)][:PARAPHRASED])
