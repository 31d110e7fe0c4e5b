"""An attempt that could not be scored is no wrong answer: its row says so, and the next run scores it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from study_arms import Arm, task

from rlm_loop.study import Study, StudyInterrupted, load_study, status, verify_traces
from rlm_loop.tasks import Attempt, Score, Suite


class Machine:
    """A scorer's machine: `fault` is what it raises, while it does."""

    def __init__(self, *faults: BaseException) -> None:
        self.faults = list(faults)

    def __call__(self, attempt: Attempt) -> Score:
        if self.faults:
            raise self.faults.pop(0)
        return Score(attempt.answer == "answer-t", float(attempt.answer == "answer-t"))


def one(machine: Machine, arm: Arm, **more: Any) -> Study:
    return Study("mine", {"a": arm}, Suite("s", (task("t").__class__("t", "Please repeat answer-t", machine),)), **more)


@pytest.mark.parametrize(
    "fault", [ModuleNotFoundError("No module named 'pandas'"), TimeoutError("the machine"), SystemExit(3)]
)
@pytest.mark.parametrize("jobs", [None, 2])
def test_a_fault_of_the_scorer_is_unscored_and_scored_by_the_next_run(
    tmp_path: Path, fault: BaseException, jobs: int | None
) -> None:
    arm = Arm()
    study = one(Machine(fault), arm)
    (row,) = study.run(tmp_path, False, jobs=jobs).rows
    assert (row["resolved"], row["value"], row["error"]) == (None, None, None)
    assert row["scorer_error"].startswith(type(fault).__name__)
    assert status(tmp_path).unscored == {type(fault).__name__: 1}
    (again,) = study.run(tmp_path, False, jobs=jobs).rows
    assert len(arm.log) == 1  # no second attempt
    assert (again["resolved"], again["scorer_error"]) == (True, None)
    assert (again["cost"], status(tmp_path).cost) == (row["cost"], row["cost"])
    assert verify_traces(tmp_path) == []


@pytest.mark.parametrize("jobs", [None, 2])
def test_ctrl_c_while_scoring_keeps_the_attempt(tmp_path: Path, jobs: int | None) -> None:
    arm = Arm()
    study = one(Machine(KeyboardInterrupt()), arm)
    with pytest.raises(StudyInterrupted):
        study.run(tmp_path, False, jobs=jobs)
    assert load_study(tmp_path).rows[0]["scorer_error"] == "KeyboardInterrupt"
    assert study.run(tmp_path, False, jobs=jobs).rows[0]["resolved"] is True
    assert len(arm.log) == 1


def test_an_attempt_that_did_not_come_back_as_it_was_is_made_again_on_request(tmp_path: Path) -> None:
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    arm = Arm()
    machine = Machine(OSError("gone"))
    study = Study("mine", {"a": arm}, Suite("s", (task("t").__class__("t", f"Please repeat {secret}", machine),)))
    study.run(tmp_path, False)
    assert secret not in (tmp_path / "results.jsonl").read_text()
    assert study.run(tmp_path, False).rows[0]["scorer_error"] == "OSError: gone"
    assert study.run(tmp_path, False, retry_failed=True).rows[0]["scorer_error"] is None
    assert len(arm.log) == 2
