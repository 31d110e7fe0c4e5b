"""The same failed first turns, gone on with in five ways; the method is in README.md."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # the repository's folder, for `experiments`

from experiments.loops.reasoning import reasoning
from experiments.recovery.shown import WAYS, Shown
from experiments.shared import LOOPS, with_window
from rlm_loop import Budget, Suite, Task
from rlm_loop.agents import Agent, outcome_of
from rlm_loop.models.base import Model
from rlm_loop.outcome import Outcome
from rlm_loop.replay import fork
from rlm_loop.study import Analysis, Study, load_study, read_trace
from rlm_loop.tasks import Split, get_suite

HERE = Path(__file__).resolve().parent
#: Drawn from each of reasoning-gym's families.  HumanEval is not asked: an action that defines a function hardly fails.
EACH = 5
STEPS = 6
#: Replies that are written side by side: a batch may change a text, and the first turns are recorded ones.  They and
#: the code loop's five ways were written four at a time.
SLOTS = 16
PLAN = Analysis(baseline="today", family=("resolved",), missing="worst")


def model_of(model: Any) -> Model:
    """Return the model; a local one answers `SLOTS` calls at once."""
    return with_window(model, 8192, slots=SLOTS)


def suites(split: Split) -> list[Suite]:
    """Return the tasks whose first turns are taken."""
    return [get_suite(f"computation/{split}"), get_suite(f"frames/{split}"), reasoning(split, EACH)]


def first(model: Any = "local", split: Split = "dev") -> Study:
    """The study of first turns: the code loop and the lean loop take one turn each."""
    common: dict[str, Any] = {"budget": Budget(steps=1), "max_tokens": 500}
    arms = {name: LOOPS[name](**common) for name in ("code", "lean")}
    return Study("recovery-first", arms, suites(split), model=model_of(model), question="Which first actions fail?")


@dataclass(frozen=True)
class Recovered:
    """An agent that goes on after a recorded first turn; failures are shown to its model in one way."""

    agent: Agent
    way: str
    model: Model
    firsts: Path
    traces: Mapping[str, tuple[str, str | None]]

    def settings(self) -> dict[str, Any]:
        return {**self.agent.settings(), "way": self.way}

    def attempt(self, task: Task, *, trace: Any = None) -> Outcome:
        name, run = self.traces[task.id]
        record = read_trace(self.firsts, name, run=run)
        shown = Shown(self.model, self.way)
        return fork(record, at=1, model=shown, budget=self.agent.budget, context=task.material(), trace=trace)


def failures(folder: Path, loop: str) -> dict[str, tuple[str, str | None]]:
    """Return the traces of a loop's first turns whose action failed, by task."""
    found: dict[str, tuple[str, str | None]] = {}
    for row in load_study(folder).rows:
        if row["arm"] == loop and not row["resolved"]:
            run = row.get("trace_run") or None
            turns = outcome_of(read_trace(folder, row["trace"], run=run)).turns
            if turns and any(seen.failure is not None for seen in turns[0].observations):
                found[row["task"]] = (row["trace"], run)
    return found


def study(model: Any = "local", loop: str = "code", split: Split = "dev", firsts: str | Path = HERE / "first") -> Study:
    """Five arms on the tasks whose first action failed in one loop; without `firsts` the study of first turns."""
    folder, made = Path(firsts), model_of(model)
    if not folder.is_dir():
        return first(model, split)
    traces = failures(folder, loop)
    agent = LOOPS[loop](model=made, budget=Budget(steps=STEPS), max_tokens=500)
    return Study(
        name=f"recovery-{loop}-{split}",
        arms={way: Recovered(agent, way, made, folder, traces) for way in WAYS},
        tasks=[
            Suite(s.name, tuple(t for t in s.tasks if t.id in traces), s.description, s.licence) for s in suites(split)
        ],
        model=made,
        differs=("other", "loop", "model", "sampling"),
        analysis=PLAN,
        question="What helps a model to recover from a failed first action?",
    )
