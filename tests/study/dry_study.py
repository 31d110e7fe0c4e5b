"""A study of an experiment as its file makes it, checked without a model, and its first tasks run by script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlm_loop.models import ScriptedModel
from rlm_loop.study import Results, Study, Unfair, fairness_check, load_study_file
from rlm_loop.tasks import get_suite

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
#: A function for whoever asks for one, and a number for the others; every loop reads it in its own way.
REPLY = "```python\nfinal_answer = 1\n```"


def loaded(name: str, **options: Any) -> Study:
    """The study of an experiment, with the package's own texts unless they are named."""
    return load_study_file(EXPERIMENTS / name, **{"texts": "default", **options})


def count(study: Study) -> tuple[Counter[str], Counter[str]]:
    """Episodes by arm, and tasks by suite."""
    episodes = study.episodes()
    tasks = {(e.suite, e.task.id) for e in episodes}
    return Counter(e.arm for e in episodes), Counter(suite for suite, _ in tasks)


def differing(study: Study) -> set[str]:
    """The factors in which arms differ; raises `Unfair` for one that is not declared."""
    if not (found := fairness_check(study)).fair:
        raise Unfair(found)
    return {d.factor for d in found.differences}


def outside(study: Study, split: str) -> list[str]:
    """Tasks that are not of this split of their suite."""
    ids = {suite.name: {t.id for t in get_suite(suite.name)} for suite in study.suites}
    return [
        f"{suite.name}/{task.id}"
        for suite in study.suites
        for task in suite
        if not suite.name.endswith(f"/{split}") or task.id not in ids[suite.name]
    ]


def run_by_script(name: str, folder: Path, limit: int, replies: Sequence[str] = (REPLY,), **options: Any) -> Results:
    """The first tasks of a study, every reply one of these in turn."""
    model = ScriptedModel(list(replies) * 4000, name="local:scripted")
    return loaded(name, model=model, **options).run(folder, progress=False, limit=limit)
