"""An attempt that could not be scored is no wrong answer: its row says so, and the next run scores it again."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from study_arms import Arm, suite, task

from rlm_loop.models import RateLimited
from rlm_loop.study import Study, StudyError, StudyInterrupted, load_study, status, verify_traces
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
    assert (again["resolved"], again["scorer_error"], "to_score" in again) == (True, None, False)
    assert (again["cost"], status(tmp_path).cost) == (row["cost"], row["cost"])
    assert verify_traces(tmp_path) == []


def test_a_full_disk_while_scoring_ends_the_run_and_keeps_the_attempt(tmp_path: Path) -> None:
    arm = Arm()
    study = one(Machine(OSError(errno.ENOSPC, "No space left on device", "/tmp/x")), arm)
    with pytest.raises(StudyError, match="make room"):
        study.run(tmp_path, False)
    assert load_study(tmp_path).rows[0]["scorer_error"].startswith("OSError")
    assert study.run(tmp_path, False).rows[0]["resolved"] is True
    assert len(arm.log) == 1


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


class Limited:
    """Breaks the first attempts of a task off after one call that cost 0.001."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __call__(self) -> Exception | None:
        self.left -= 1
        if self.left < 0:
            return None
        limit = RateLimited("slow down", "m", True)
        limit.retry_after = 0.0
        return limit


def test_attempts_that_were_broken_off_count_in_the_cost(tmp_path: Path) -> None:
    """Rows, `max_cost` and `status` know all that was spent, though a table shows one row an episode."""
    limit = Limited(2)

    class Often(Arm):
        def attempt(self, task: Any, *, trace: Any = None) -> Any:
            return Arm("a", self.turns, after_one_call=limit()).attempt(task, trace=trace)

    study = Study("mine", {"a": Often(turns=2)}, suite("s", 3))
    found = study.run(tmp_path, False)
    assert [r["broken_off"] for r in found.rows if r.get("broken_off")] == [2]
    assert sum(r["cost"] for r in found.rows) == pytest.approx(0.008)
    assert status(tmp_path).cost == pytest.approx(0.008)
    assert sum(r["cost"] for r in load_study(tmp_path).rows) == pytest.approx(0.008)
    more = Study("mine", {"a": Often(turns=2)}, suite("s", 9))
    with pytest.warns(match=r"\$0.01 of at most \$0.011 are spent"):
        more.run(tmp_path, False, max_cost=0.011)
    assert status(tmp_path).cost == pytest.approx(0.010)
