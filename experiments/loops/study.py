"""Loops with one reader and one answer contract, on tasks that no earlier study had; the method is in README.md."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments`

from experiments.loops.fresh_frames import fresh_frames
from experiments.loops.reasoning import reasoning
from experiments.loops.repositories import repositories
from experiments.loops.texts import KINDS, text
from experiments.shared import chosen, spread, with_window, words
from rlm_loop import Budget, DirectAgent, LeanAgent, ReActAgent, Suite, ToolLoopAgent
from rlm_loop.agents import Agent
from rlm_loop.study import Analysis, Study
from rlm_loop.tasks import Split, get_suite

#: Problems of HumanEval's test split that no committed study has used.
UNUSED = (107, 111, 119, 123, 127, 131, 135, 139, 151, 155, 159, 163)
#: Tasks of each suite of dev splits on which the texts are chosen.
TRIED = {"reasoning": 5, "humaneval": 3, "fresh_frames": 4, "repositories": 4}
#: The chosen texts by part and loop; None where they are still to be chosen.
CHOSEN: Mapping[str, Mapping[str, str]] = {"questions": {}, "repairs": {}}
#: In what the arms differ; anything else stops the study (`rlm-loop study check`).
DIFFERS = ("loop", "reply_format", "system", "injectors", "tool_presentation", "data", "budget")
#: Declared before the run: each loop against the code loop, in either direction.
PLAN = Analysis(baseline="code", family=("resolved",), missing="worst")
#: A function that makes each loop.  Calls are written as text for a local model, and native for others.
MAKERS: Mapping[str, Any] = {
    "code": ToolLoopAgent,
    "lean": LeanAgent,
    "react": ReActAgent,
    "react-calls": partial(ReActAgent, form="calls"),
    "program": ToolLoopAgent,
    "prose": partial(DirectAgent, window=6000),
}
#: The code loop once more: how often it differs from itself is the noise floor.
AGAIN = "code-again"
#: Replies that are written side by side; a batch may change a text, which the noise floor shows.
SLOTS = 16
#: Loops of each part: without a second reply nothing can be searched, so repairs have no such arm.
LOOPS = {"questions": tuple(MAKERS), "repairs": ("code", "lean", "react", "react-calls")}
STEPS = {"questions": 6, "repairs": 10}


def agent(loop: str, kind: str, part: str, **options: Any) -> Agent:
    """Return a loop with one of its candidate texts; `program` and `prose` have one reply, really one."""
    steps = 1 if loop in ("program", "prose") else STEPS[part]
    system = text(loop, kind, part, **options)
    return MAKERS[loop](system=system, budget=Budget(steps=steps), max_tokens=500, max_depth=0)


def suites(part: str, split: Split, tried: bool, function_edit: bool) -> list[Suite]:
    """Return the tasks of a part; with `tried` the few of `TRIED`."""
    if part == "repairs":
        found = [repositories(split, function_edit=function_edit)]
        found = [replace(suite, tasks=spread(suite.tasks, 40)) for suite in found]
    else:
        found = [reasoning(split, 3), get_suite(f"humaneval/{split}"), fresh_frames(split)]
        if split == "test":
            unused = {f"HumanEval/{number}" for number in UNUSED}
            found[1] = replace(found[1], tasks=tuple(task for task in found[1].tasks if task.id in unused))
    if not tried:
        return found
    return [replace(suite, tasks=spread(suite.tasks, TRIED[suite.name.partition("/")[0]])) for suite in found]


def study(
    model: Any = "local",
    part: str = "questions",
    split: Split = "test",
    tune: bool = False,
    function_edit: bool = False,
    only: str | Sequence[str] = (),
) -> Study:
    """The grid of a part (`questions` or `repairs`); with `tune` every candidate text on a few dev tasks."""
    tried: dict[str, Agent] = {}
    options = {"function_edit": function_edit} if part == "repairs" else {}
    for loop in LOOPS[part]:
        kinds = KINDS if tune else [CHOSEN[part].get(loop, "both")]
        tried |= {f"{loop}-{kind}" if tune else loop: agent(loop, kind, part, **options) for kind in kinds}
    if not tune:
        tried[AGAIN] = agent("code", CHOSEN[part].get("code", "both"), part, **options)
    return Study(
        name=f"loops-{part}" + ("-tuning" if tune else ""),
        arms=chosen(tried, words(only)),
        tasks=suites(part, "dev" if tune else split, tune, function_edit),
        seeds=(0,),
        model=with_window(model, 8192, slots=SLOTS),
        differs=DIFFERS,
        analysis=None if tune or "code" not in chosen(tried, words(only)) else PLAN,
        question="Which texts are best for each loop?" if tune else "Which loop resolves more, and at what price?",
    )
