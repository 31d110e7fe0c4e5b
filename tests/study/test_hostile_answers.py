"""Whatever a cell answers and whatever its scorer makes of it, a study has a row for it, and reads it again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import Budget, ScriptedModel, ToolLoopAgent
from rlm_loop.study import Study, load_study
from rlm_loop.tasks import Attempt, Score, Task

ANSWERS = {
    "5,000 digits": "final_answer = 10**5000",
    "half a surrogate pair": "final_answer = 'a\\ud800b'",
    "no number": "final_answer = float('nan')",
    "without end": "final_answer = {'a': float('inf')}",
    "deep": "final_answer = []\nfor _ in range(2000): final_answer = [final_answer]",
    "30 MB": "final_answer = 'x' * 30_000_000",
    "a forged table": "final_answer = {'~': 'table', 'columns': ['a'], 'index': {'~': 'range'}, 'data': {'~': 'x'}}",
    "keys of all kinds": "final_answer = {(1, 2): [3], None: b'\\xff', 1: {2}}",
    "it will not be written": (
        "class A:\n    def __str__(s): raise ValueError\n    __repr__ = __eq__ = __str__\nfinal_answer = A()"
    ),
    "not even its fault will": "class E(BaseException):\n    def __str__(s): raise E\nraise E()",
}


class Unwritable(Exception):
    def __str__(self) -> str:
        raise ValueError("not even its text")


def fails(_: Attempt) -> Score:
    raise Unwritable


SCORERS: dict[str, Callable[[Attempt], Any]] = {
    "equal": lambda attempt: Score(attempt.answer == [3], 0.0, ""),
    "written": lambda attempt: Score(False, 0.0, str(attempt.answer)),
    "passed_on": lambda attempt: Score(attempt.answer, attempt.answer, attempt.answer),
    "none": lambda attempt: None,
    "fails": fails,
}


@pytest.mark.slow
@pytest.mark.parametrize("code", ANSWERS.values(), ids=ANSWERS.keys())
def test_every_answer_has_its_row(tmp_path: Path, code: str) -> None:
    tasks = [Task(name, f"Be {name}.", scorer) for name, scorer in SCORERS.items()]
    model = ScriptedModel([f"```python\n{code}\n```"] * len(SCORERS))
    agent = ToolLoopAgent(model=model, repl="plain", budget=Budget(steps=1))
    rows = {row["task"]: row for row in Study("mine", {"a": agent}, tasks).run(tmp_path, False).rows}
    assert {name: row["error"] for name, row in rows.items()} == dict.fromkeys(SCORERS)
    assert (rows["equal"]["resolved"], rows["passed_on"]["resolved"]) == (False, None)
    assert rows["fails"]["scorer_error"].startswith("Unwritable")
    assert len(load_study(tmp_path).rows) == len(SCORERS)
