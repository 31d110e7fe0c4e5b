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
from experiments.loops.reasoning import SHORT, reasoning
from experiments.loops.repositories import repositories
from experiments.loops.texts import KINDS, text
from experiments.shared import chosen, spread, with_window, words
from rlm_loop import Budget, DirectAgent, LeanAgent, ReActAgent, Suite, ToolLoopAgent
from rlm_loop.agents import Agent, Rules
from rlm_loop.agents.strategies import default_presentation
from rlm_loop.dialects import ThoughtPrompt
from rlm_loop.study import Analysis, Study
from rlm_loop.tasks import Split, get_suite

#: Problems of HumanEval's test split that no committed study has used.
UNUSED = (107, 111, 119, 123, 127, 131, 135, 139, 151, 155, 159, 163)
#: Tasks of each suite on which the texts are chosen (of dev splits), and those that are asked in five wordings.
TRIED = {"reasoning": 5, "humaneval": 3, "fresh_frames": 4, "repositories": 4}
REWORDED = {"reasoning": 12, "humaneval": 3, "fresh_frames": 9}
#: The chosen texts by part and loop; of a loop none of whose texts mended anything, the one with the fewest tokens.
CHOSEN: Mapping[str, Mapping[str, str]] = {
    "questions": {
        "code": "check",
        "lean": "rule",
        "react": "both",
        "react-calls": "check",
        "program": "solved",
        "prose": "rule",
    },
    "repairs": {
        "code": "rule",
        "code-by-name": "solved",
        "lean": "rule",
        "lean-by-name": "check",
        "react": "check",
        "react-by-name": "rule",
        "react-calls": "solved",
        "react-calls-by-name": "check",
    },
}
#: In what the arms differ; anything else stops the study (`rlm-loop study check`).
DIFFERS = ("loop", "reply_format", "system", "injectors", "tools", "tool_presentation", "data", "budget")
DIFFERS_IN_SETTINGS = (*DIFFERS, "history", "sampling")
#: Names no tool, so that it fits both loops; the package's own thought prompt is written for loops with a final tool.
THOUGHT = "Think about what you have learned so far and decide on the next step. If you know the result, give it."
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
#: One setting of a loop changed at a time.
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "steps=2": {"max_steps": 2},
    "history=4": {"history": 4},  # messages: system text, task and the last turn
    "thought": {"injectors": (ThoughtPrompt(THOUGHT),)},
    "require_code": {"rules": Rules(require_code=True)},
    "temperature=0.7": {"temperature": 0.7},
}
#: What each part asks.
QUESTIONS = {
    "questions": "Which loop resolves more, and at what price?",
    "repairs": "Which loop mends more, and at what price?",
    "wordings": "How much do the words decide?",
    "settings": "Which setting moves what is resolved, and which only the bill?",
}
#: The code loop once more: how often it differs from itself is the noise floor.
AGAIN = "code-again"
#: Replies that are written side by side; a batch may change a text, which the noise floor shows.
SLOTS = 16
#: Loops of each part: without a second reply nothing can be searched, so repairs have no such arm.
LOOPS = {
    "questions": tuple(MAKERS),
    "repairs": ("code", "lean", "react", "react-calls"),
    "wordings": ("code", "lean", "react"),
    "settings": ("code", "lean"),
}
STEPS = {"questions": 6, "wordings": 6, "settings": 6, "repairs": 10}
#: What an arm edits with: `apply_edit` by lines, `edit_function` (added to the arm's name) by the name of a function.
EDITS = {"": "apply_edit", "-by-name": "edit_function"}


def chosen_text(part: str, arm: str) -> str:
    """Return the kind of text that was chosen for an arm of a part; `both` until one is."""
    return CHOSEN["repairs" if part == "repairs" else "questions"].get(arm, "both")


def agent(loop: str, kind: str, part: str, *, edit: str = "", wording: int = 1, native: bool = False) -> Agent:
    """Return a loop with one of its candidate texts; `program` and `prose` have one reply, really one."""
    options: dict[str, Any] = {}
    if part == "repairs":
        options["rules"] = Rules(allow=("search_code", "read_file", EDITS[edit]))
    of = "repairs" if part == "repairs" else "questions"
    system = text(loop, kind, of, function_edit=bool(edit), wording=wording, native=native)
    steps = 1 if loop in ("program", "prose") else STEPS[part]
    return MAKERS[loop](system=system, budget=Budget(steps=steps), max_tokens=500, max_depth=0, **options)


def arms(part: str, tune: bool, native: bool) -> dict[str, Agent]:
    """Return the arms of a part; with `tune` one for each candidate text of each loop."""
    made: dict[str, Agent] = {}
    for loop in LOOPS[part]:
        for edit in EDITS if part == "repairs" else ("",):
            for kind in KINDS if tune else [chosen_text(part, loop + edit)]:
                made[f"{loop}{edit}-{kind}" if tune else loop + edit] = agent(
                    loop, kind, part, edit=edit, native=native
                )
        for wording in range(2, 6) if part == "wordings" else ():
            made[f"{loop}-{wording}"] = agent(loop, chosen_text(part, loop), part, wording=wording, native=native)
        for setting, changed in SETTINGS.items() if part == "settings" else ():
            if (loop, setting) != ("lean", "require_code"):  # it is about answers in words, and lean's is a call
                made[f"{loop}[{setting}]"] = replace(made[loop], **changed)
    if not tune:
        made[AGAIN] = agent("code", chosen_text(part, "code"), part)
    return made


def suites(part: str, split: Split, tune: bool) -> list[Suite]:
    """Return the tasks of a part; with `tune` the few of `TRIED`."""
    if part == "repairs":
        return [_some(repositories(split), TRIED["repositories"] if tune else 40)]
    found = [reasoning(split, 4, SHORT), get_suite(f"humaneval/{split}"), fresh_frames(split)]
    if split == "test":
        unused = {f"HumanEval/{number}" for number in UNUSED}
        found[1] = replace(found[1], tasks=tuple(task for task in found[1].tasks if task.id in unused))
    if part == "questions" and not tune:
        return found
    counts = TRIED if tune else REWORDED
    return [_some(suite, counts[suite.name.partition("/")[0]]) for suite in found]


def _some(suite: Suite, count: int) -> Suite:
    return replace(suite, tasks=spread(suite.tasks, count))


def study(
    model: Any = "local",
    part: str = "questions",
    split: Split = "test",
    tune: bool = False,
    only: str | Sequence[str] = (),
) -> Study:
    """The grid of a part (`questions`, `wordings`, `settings`, `repairs`); with `tune` all texts on a few dev tasks."""
    native = default_presentation(model) == "native"
    picked = chosen(arms(part, tune, native), words(only))
    return Study(
        name=f"loops-{part}" + ("-tuning" if tune else ""),
        arms=picked,
        tasks=suites(part, "dev" if tune else split, tune),
        seeds=(0,),
        model=with_window(model, 8192, slots=SLOTS),
        differs=DIFFERS_IN_SETTINGS if part == "settings" else DIFFERS,
        analysis=None if tune or part == "settings" or "code" not in picked else PLAN,
        question="Which texts are best for each loop?" if tune else QUESTIONS[part],
    )
