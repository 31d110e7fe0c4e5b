"""Three loops on ten instances of SWE-bench Lite; the question, the method and the commands are in README.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlm_loop import Budget, LeanAgent, ReActAgent, Suite, ToolLoopAgent
from rlm_loop.agents import Agent
from rlm_loop.agents.localise import Localise
from rlm_loop.study import Analysis, Study
from rlm_loop.tasks import get_suite

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import chosen, with_window, words

#: The first five of astropy and of django in the order of SWE-bench Lite's file: the published comparison that
#: prompted this study names no instances.
INSTANCES = (
    *(f"astropy__astropy-{n}" for n in (6938, 12907, 14182, 14365, 14995)),
    *(f"django__django-{n}" for n in (10914, 10924, 11001, 11019, 11039)),
)
#: In what the arms differ; anything else stops the study (`rlm-loop study check`).
DIFFERS = ("loop", "reply_format", "system", "injectors", "tool_presentation")
#: Declared before the first episode: each arm against ReAct, by McNemar's exact test.
PLAN = Analysis(baseline="react", margin=0.0, family=("resolved", "input_tokens"), missing="worst")
#: The note's budget of turns, and a window of 32K tokens, of which it says what a frame takes.
STEPS, WINDOW = 15, 32_000


def arms(model: Any, steps: int, max_tokens: int, files: int, tokens: int) -> dict[str, Agent]:
    """The package's default texts.  Model, tools, budget and the ranked list of file names are the same in all."""
    same: dict[str, Any] = {
        "model": model,
        "budget": Budget(steps=steps, tokens=tokens),
        "max_tokens": max_tokens,
        "max_depth": 0,
        "history": None,
        "injectors": (Localise(files=files, leave_out=("test*", "*/test*")),) if files else (),
    }
    return {
        "lean": LeanAgent(**same),
        "code": ToolLoopAgent(**same),
        "react": ReActAgent(**same, form="calls"),
    }


def suite(instances: str, repos: str | None, clone: bool) -> Suite:
    """The ten instances of a set; each has to be there."""
    return get_suite(f"swebench:{instances}", ids=INSTANCES, repos=repos, clone=clone)


def study(
    model: Any = "ollama/qwen3-coder:30b",
    instances: str = "lite",
    repos: str | None = None,
    clone: bool = True,
    only: str | Sequence[str] = (),
    seed: int = 0,
    steps: int = STEPS,
    max_tokens: int = 2048,
    files: int = 10,
) -> Study:
    """Three arms on ten tasks: 30 episodes.

    `instances` is a published set or a file of instances, `repos` a folder of clones (made there from GitHub where
    `clone` says so).  `files` is the length of the ranked list of file names, 0 for none.
    """
    tokens = steps * WINDOW
    return Study(
        name="swebench_lite",
        arms=lambda model, _seed: chosen(arms(model, steps, max_tokens, files, tokens), words(only)),
        tasks=suite(instances, repos, clone),
        seeds=(seed,),
        model=with_window(model, 8192),
        differs=DIFFERS,
        question="Which loop resolves more of the same ten issues, and for how many tokens?",
        analysis=PLAN,
    )
