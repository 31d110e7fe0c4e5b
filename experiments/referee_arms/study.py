"""One thing of a loop changed at a time, on 24 tasks of test splits; what for is in README.md."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlm_loop import Budget, DirectAgent, Suite
from rlm_loop.agents import Agent
from rlm_loop.dialects.injectors import FormatReminder
from rlm_loop.study import Study

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.answer_contract.study import WINDOW, strict
from experiments.shared import chosen as wanted
from experiments.shared import served, spread_tasks, words
from experiments.tuning.best import Chosen, chosen
from experiments.tuning.texts import REACT_EXAMPLE, REACT_TODAY

SUITES = {"computation": 5, "tables": 5, "frames": 5, "humaneval": 5, "function-repair": 4}
DIFFERS = ("loop", "reply_format", "system", "tool_presentation", "data", "injectors", "budget")
#: Said after every turn; the second says nothing, so its arm is the same arm again.
NEUTRAL = {"proceed": "Proceed.", "empty": ""}


def tasks() -> list[Suite]:
    """24 tasks at equal distances through five test splits."""
    return spread_tasks(SUITES, "test")


def arms(texts: str = "tuned", round2: str = "", steps: int = 5, max_tokens: int = 500) -> dict[str, Agent]:
    """The arms by name; one with a setting in brackets differs from the loop before them in that alone."""
    common: dict[str, Any] = {"budget": Budget(steps=steps), "max_tokens": max_tokens}
    loops = chosen(texts, round2=round2)
    made: dict[str, Agent] = {"direct": DirectAgent(window=WINDOW, max_depth=0, **common)}
    for loop, one in loops.items():
        agent = made[loop] = one.make(**common)
        made[f"{loop}[repeated=none]"] = replace(agent, budget=Budget(steps=steps, repeated=None))
        made[f"{loop}[malformed=1]"] = replace(agent, budget=Budget(steps=steps, malformed=1))
    free = loops["lean"]
    if free.constrained:
        free = chosen(texts, round2=round2, free=True)["lean"]
        made["lean-free"] = free.make(**common)
    made[f"{free_lean(loops)}[text_answers=no]"] = strict(free, **common)
    for name, text in NEUTRAL.items():
        made[f"lean[says={name}]"] = replace(made["lean"], injectors=(FormatReminder(text, f"says_{name}"),))
    example, text = other_example(loops["react"])
    made[f"react[example={example}]"] = replace(made["react"], system=text)
    return made


def free_lean(loops: Mapping[str, Chosen]) -> str:
    """The lean arm whose replies no grammar holds to calls: only there can a text be an answer."""
    return "lean-free" if loops["lean"].constrained else "lean"


def other_example(react: Chosen) -> tuple[str, str]:
    """`no` and the template where the chosen text of ReAct shows a solved question, else `yes` and one that does."""
    rule = react.make(model="local").settings()["dialect"]["rule"]
    for shown, bare in ((REACT_EXAMPLE, REACT_TODAY), (REACT_TODAY, REACT_EXAMPLE)):
        if rule.startswith(shown):  # a sentence on functions may follow, and stays
            return ("no" if shown == REACT_EXAMPLE else "yes"), bare + rule.removeprefix(shown)
    raise ValueError(f"it is not known whether this text of ReAct shows a solved question: {rule[:60]!r}")


def pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """What is compared, declared before the run: an arm and the loop that it is a change of; a loop and `direct`."""
    loops = [name for name in names if "[" not in name and name != "direct"]
    return [(n, n.partition("[")[0]) for n in names if "[" in n] + [(loop, "direct") for loop in loops]


def study(
    model: Any = "local",
    texts: str = "tuned",
    round2: str = "",
    seed: int = 0,
    steps: int = 5,
    max_tokens: int = 500,
    only: str | Sequence[str] = (),
    slots: int = 1,
) -> Study:
    """The grid; `only` are the arms that are wanted.  The other frameworks are in `peers.py`."""
    return Study(
        name="referee-arms",
        arms=wanted(arms(texts, round2, steps, max_tokens), words(only)),
        tasks=tasks(),
        seeds=(seed,),
        model=served(model, slots, 8192, seed),
        differs=DIFFERS,
        question="Which choices of ours, and which of other frameworks, do the differences between loops hang on?",
    )
