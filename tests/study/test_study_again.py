"""Again: an attempt that was not scored is scored by the next run, and one that was broken off is no row's attempt."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from study_arms import Arm

from rlm_loop import ToolLoopAgent
from rlm_loop.models import ModelError, ScriptedModel
from rlm_loop.study import Study, StudyInterrupted, load_study, status, verify_traces
from rlm_loop.tasks import Attempt, Score, Task
from rlm_loop.traces import Trace, read, read_all


def study(arm: Arm, *faults: BaseException, truth: str = "answer-t") -> Study:
    """One task whose scorer raises each of these in turn, and then scores."""
    left = list(faults)

    def judge(attempt: Attempt) -> Score:
        if left:
            raise left.pop(0)
        return Score(attempt.answer == truth, float(attempt.answer == truth))

    return Study("mine", {"a": arm}, Task("t", f"Please repeat {truth}", judge))


FAULTS = ModuleNotFoundError("No module 'x'"), TimeoutError("late"), SystemExit(3), KeyboardInterrupt()


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
@pytest.mark.parametrize("jobs", [None, 2])
def test_a_fault_of_the_scorer_is_unscored_and_scored_by_the_next_run(tmp_path: Path, fault: Any, jobs: Any) -> None:
    arm = Arm()
    mine = study(arm, fault)
    with pytest.raises(StudyInterrupted) if isinstance(fault, KeyboardInterrupt) else nullcontext():
        mine.run(tmp_path, False, jobs=jobs)
    (row,) = load_study(tmp_path).rows
    assert (row["resolved"], row["value"], row["error"]) == (None, None, None)
    assert row["scorer_error"].startswith(type(fault).__name__)
    assert status(tmp_path).unscored == {type(fault).__name__: 1}
    (again,) = mine.run(tmp_path, False, jobs=jobs).rows
    assert len(arm.log) == 1  # no second attempt
    assert (again["resolved"], again["scorer_error"]) == (True, None)
    assert row["cost"] > 0
    assert (again["cost"], status(tmp_path).cost) == (row["cost"], row["cost"])
    assert verify_traces(tmp_path) == []


def test_an_attempt_that_did_not_come_back_as_it_was_is_made_again_on_request(tmp_path: Path) -> None:
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    arm = Arm()
    mine = study(arm, OSError("gone"), truth=secret)
    mine.run(tmp_path, False)
    assert secret not in (tmp_path / "results.jsonl").read_text()
    assert mine.run(tmp_path, False).rows[0]["scorer_error"] == "OSError: gone"
    assert mine.run(tmp_path, False, retry_failed=True).rows[0]["scorer_error"] is None
    assert len(arm.log) == 2


# -- attempts that were broken off: the trace says so, and everything reads the attempt of the row

GOOD = "```python\nfinal_answer = 4\n```"


def again(*replies: Any) -> Study:
    return Study("mine", {"a": ToolLoopAgent(model=ScriptedModel(replies))}, Task("t", "2 + 2?", 4))


def test_an_attempt_that_failed_and_was_tried_again_does_not_count(tmp_path: Path) -> None:
    mine = again("```python\nprint(1)\n```", ModelError("the provider is down"), GOOD)
    failed = mine.run(tmp_path, False).rows[0]
    assert read(tmp_path / failed["trace"]).aborted is None  # it is what the row is about
    row = mine.run(tmp_path, False, retry_failed=True).rows[0]
    first, second = read_all(tmp_path / row["trace"])
    assert (first.id, first.aborted, second.aborted) == (failed["trace_run"], "it was broken off and tried again", None)
    assert read(tmp_path / row["trace"]).id == load_study(tmp_path).trace(row).id == row["trace_run"] == second.id
    assert verify_traces(tmp_path) == []


def test_a_later_attempt_that_was_killed_takes_nothing_from_the_row(tmp_path: Path) -> None:
    row = again(GOOD).run(tmp_path, False).rows[0]
    with Trace(tmp_path / row["trace"]) as killed:
        killed.start(task="t")
    assert read(tmp_path / row["trace"]).end is None
    assert load_study(tmp_path).trace(row).end is not None
    assert verify_traces(tmp_path) == []


@pytest.mark.parametrize("content", [b"", b"not a trace\n", b'{"event":"reply"}\n'])
def test_what_is_no_trace_does_not_stop_an_episode(tmp_path: Path, content: bytes) -> None:
    mine = again(GOOD)
    path = tmp_path / mine.episodes()[0].trace
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    (row,) = mine.run(tmp_path, False).rows
    assert (row["error"], tmp_path / row["trace"]) == (None, path)
