"""The small part of the study that `make demo` runs: three arms on four tasks, about six minutes on two cores."""

from __future__ import annotations

from pathlib import Path

from rlm_loop.study import Study, load_study_file
from rlm_loop.tasks import Suite

ARMS = ("code", "lean", "react-text")
TASKS = {"computation": 2, "tables": 1, "function-repair": 1}


def study(model: str = "local") -> Study:
    """Three arms of the study on tasks of its dev split, so that trying things out spoils none of the test split."""
    whole = load_study_file(Path(__file__).parent, model=model, split="dev")
    make = whole.arms

    def arms(model: str, seed: int) -> dict[str, object]:
        made = make(model, seed)
        return {name: made[name] for name in ARMS}

    suites = [Suite(s.name, s.tasks[: TASKS[s.name.split("/")[0]]], s.description, s.licence) for s in whole.suites]
    question = "What do three loops resolve of four tasks, and for how many tokens?"
    return Study("demo", arms, suites, whole.seeds, whole.model, whole.differs, question=question)
