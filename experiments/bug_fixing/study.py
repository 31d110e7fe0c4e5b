"""Bugs in git checkouts: four loops, the same model, tools and budget; the question and the method are in README.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlm_loop import Budget, LeanAgent, ReActAgent, Suite, ToolLoopAgent
from rlm_loop.agents import Agent
from rlm_loop.agents.localise import Localise
from rlm_loop.dialects.function_calls import Presentation
from rlm_loop.study import Study, StudyError
from rlm_loop.tasks import Split, Task, get_suite

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import chosen, served, words

SUITES = ("humaneval-repair", "package_bugs")
#: In what the arms differ; anything else stops the study (`rlm-loop study check`).
DIFFERS = ("loop", "reply_format", "system", "injectors", "tool_presentation")


def arms(
    model: Any,
    steps: int = 8,
    max_tokens: int = 300,
    files: int = 5,
    presentation: Presentation = "constrained",
) -> dict[str, Agent]:
    """The arms.  Model, budget, tools and the ranked list of files are the same in all, and so is the text list of
    the tools; `presentation` says whether the two arms with calls are held to its form by a grammar."""
    same: dict[str, Any] = {
        "model": model,
        "budget": Budget(steps=steps),
        "max_depth": 1,
        "max_tokens": max_tokens,
        "injectors": (Localise(files=files, leave_out=("test*", "*/test*")),) if files else (),
    }
    # Small models make no native tool calls: the tools are listed as text, and calls written as text are read.
    listed: dict[str, Any] = {**same, "presentation": presentation}
    return {
        "code": ToolLoopAgent(**same),
        "lean": LeanAgent(**listed),
        "react-native": ReActAgent(**listed, form="calls"),
        "react-text": ReActAgent(**same, form="text"),
    }


def suites(
    split: Split = "test",
    tasks: int = 20,
    names: Sequence[str] = SUITES,
    shown: bool = False,
) -> list[Suite]:
    """`tasks` of this split of each suite, spread evenly over it (so that every package has its turn)."""
    found = [get_suite(f"{name}/{split}") for name in names]
    spread = [tuple(s.tasks[i * len(s) // tasks] for i in range(min(tasks, len(s)))) for s in found]
    return [replace(s, tasks=tuple(map(with_file, ts)) if shown else ts) for s, ts in zip(found, spread, strict=True)]


def with_file(task: Task) -> Task:
    """The task with the file in the question, numbered as `read_file` shows it: nothing is left to be found."""
    name, _, text = task.inline.partition(":\n")
    if not name or "\n" in name:
        raise StudyError(f"{task.id} has no file to show: with shown=1 take names=humaneval-repair")
    lines = "\n".join(f"{number}: {line}" for number, line in enumerate(text.splitlines(), 1))
    return replace(task, question=f"{task.question}\n\n{name}:\n{lines}")


def study(
    model: Any = "local",
    split: Split = "test",
    tasks: int = 20,
    seed: int = 0,
    steps: int = 8,
    max_tokens: int = 300,
    files: int = 5,
    names: str | Sequence[str] = SUITES,
    presentation: Presentation = "constrained",
    only: str | Sequence[str] = (),
    shown: bool = False,
    slots: int = 1,
) -> Study:
    """The grid: four arms on `tasks` bugs of each of two suites; `names` are those of the suites, with commas.

    `only` are the arms that are wanted, `files` is the length of the ranked list of files (0: none),
    `presentation` how the arms with calls are given their tools.  With `shown` the
    question holds the file, numbered, so that only the mending is left (suites of one file: `names=humaneval-repair`).
    With `slots` the local model answers that many episodes side by side (use as many `--jobs`); batching may then
    change a text.
    """
    return Study(
        name=f"bug_fixing-{split}-shown" if shown else f"bug_fixing-{split}",
        arms=lambda model, _seed: chosen(arms(model, steps, max_tokens, files, presentation), words(only)),
        tasks=suites(split, tasks, words(names), shown),
        seeds=(seed,),
        model=served(model, slots, 12_288, seed),
        differs=DIFFERS,
    )
