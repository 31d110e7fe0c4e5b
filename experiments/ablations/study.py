"""One setting changed at a time, around a code loop and a lean loop; the question and the method are in README.md."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlm_loop import Budget, LeanAgent, ToolLoopAgent
from rlm_loop.agents import Agent, Rules
from rlm_loop.dialects import ThoughtPrompt
from rlm_loop.models import get_model
from rlm_loop.study import Study
from rlm_loop.tasks import Split

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments.shared`

from experiments.shared import chosen, first_tasks, served, words

SUITES = ("computation", "tables", "long_context/records@8k")
#: In what the arms differ; anything else stops the study (`rlm-loop study check`).
DIFFERS = (
    "loop",
    "system",
    "tools",
    "tool_presentation",
    "injectors",
    "history",
    "recursion",
    "sampling",
)
#: Names no tool, so that it fits both loops; the package's own thought prompt is written for loops with a final tool.
THOUGHT = "Think about what you have learned so far and decide on the next step. If you know the result, give it."
#: The settings that are changed, each alone, and the value that each gets instead of the default.
CHANGES: Mapping[str, Any] = {
    "injectors": (ThoughtPrompt(THOUGHT),),
    "max_history": 4,  # messages: system text, task and the last turn
    "max_depth": 0,
    "require_code": True,
    "temperature": 0.7,
}
#: Which changes each loop goes through.  Sub-calls, histories and `require_code` are what the code loop is about.
CHANGED = {"code": tuple(CHANGES), "lean": ("injectors", "temperature")}


def arms(model: Any, warm: Any, steps: int = 5, max_tokens: int = 300) -> dict[str, Agent]:
    """The arms: each loop with the defaults, and with one setting changed; `warm` is the model that samples."""
    same: dict[str, Any] = {
        "model": model,
        "budget": Budget(steps=steps),
        "max_tokens": max_tokens,
        "max_depth": 1,
    }
    # Small models make no native tool calls: the tools are listed as text, and calls written as text are read.
    loops: dict[str, Agent] = {"code": ToolLoopAgent(**same), "lean": LeanAgent(**same, presentation="text")}
    made: dict[str, Agent] = {}
    for loop, agent in loops.items():
        made[loop] = agent
        for setting in CHANGED[loop]:
            made[f"{loop}[{setting}={label(setting)}]"] = replace(agent, **changed(setting, warm))
    return made


def changed(setting: str, warm: Any) -> dict[str, Any]:
    """The agent's field for a setting, which is called as in the recorded arms."""
    value = CHANGES[setting]
    fields = {"max_history": {"history": value}, "require_code": {"rules": Rules(require_code=value)}}
    return {"model": warm} if setting == "temperature" else fields.get(setting, {setting: value})


def label(setting: str) -> str:
    """The changed value in an arm's name; an injector is called by its own name."""
    value = CHANGES[setting]
    return "+".join(i.name for i in value) if setting == "injectors" else str(value)


def study(
    model: Any = "local",
    split: Split = "test",
    tasks: int = 4,
    seed: int = 0,
    steps: int = 5,
    max_tokens: int = 300,
    only: str | Sequence[str] = (),
    slots: int = 1,
) -> Study:
    """The grid: nine arms on `tasks` tasks of each of three suites; `only` are the arms that are wanted.

    `model` is a name: one arm takes the same model at another temperature.  `slots` as in `experiments.shared.served`.
    """
    cold, warm = (sampled(model, t, seed, slots) for t in (0.0, CHANGES["temperature"]))
    return Study(
        name=f"ablations-{split}",
        arms=lambda model, _seed: chosen(arms(model, warm, steps, max_tokens), words(only)),
        tasks=first_tasks(dict.fromkeys(SUITES, tasks), split),
        seeds=(seed,),
        model=cold,
        differs=DIFFERS,
    )


def sampled(model: Any, temperature: float, seed: int, slots: int = 1) -> Any:
    """The model at a temperature.  Local ones share one loaded copy; a model object, such as a script, stays itself."""
    if not isinstance(model, str):
        return model
    if slots == 1:
        return get_model(model, temperature=temperature, seed=seed)
    return served(model, slots, 4096, seed, temperature=temperature)
