"""Scoring: any answer has its row; what was not scored is scored by the next run, or again by a mended truth."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from study_arms import Arm

from rlm_loop import Budget, LeanAgent, ToolLoopAgent
from rlm_loop.models import ModelError, ScriptedModel
from rlm_loop.study import Study, StudyError, StudyInterrupted, load_study, rescore, status, verify_traces
from rlm_loop.tasks import Attempt, Score, Suite, Task, get_suite
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
    assert status(tmp_path).unknown == 1
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


# -- one recorded run, scored by each contract that its task knows, and by a corrected truth

CODE = "def twice(x):\n    return 2 * x"
PROBLEM = {
    "task_id": "HumanEval/0",
    "prompt": 'def twice(x):\n    """ Two times x. """\n',
    "entry_point": "twice",
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(3) == 6\n",
}


def test_rows_keep_every_contract_and_a_run_can_be_scored_again(tmp_path: Path) -> None:
    """An arm defines the function in the REPL and answers with something else; the other answers with it."""
    (tmp_path / "problems.jsonl").write_text(json.dumps(PROBLEM), encoding="utf-8")
    suite = get_suite("humaneval", path=tmp_path / "problems.jsonl", timeout=30)
    code = ToolLoopAgent(model=ScriptedModel([f"```python\n{CODE}\nfinal_answer = 'done'\n```"]))
    arms = {"code": code, "lean": LeanAgent(ScriptedModel([CODE]), presentation="text")}
    rows = Study("contracts", arms, suite).run(tmp_path / "runs", progress=False).rows
    found = {row["arm"]: (row["resolved"], row["by_submission"]) for row in rows}
    both = {"artifact": True, "answer": True}
    assert found == {"code": (True, {**both, "answer": False}), "lean": (True, both)}
    again = {row["arm"]: row for row in rescore(tmp_path / "runs", lambda _: suite.submitting("answer"))}
    scored = {arm: (row["recorded"], row["resolved"]) for arm, row in again.items()}
    assert scored == {"code": (True, False), "lean": (True, True)}
    assert all(row["by_submission"] == found[arm][1] for arm, row in again.items())
    with pytest.raises(StudyError, match="no task HumanEval/0 today"):
        list(rescore(tmp_path / "runs", lambda name: Suite(name, (Task("other", "?", 1),))))


def test_a_suite_of_ones_own_has_one_contract_and_is_asked_for(tmp_path: Path) -> None:
    agent = {"lean": LeanAgent(model=ScriptedModel(["2"]), presentation="text")}
    (row,) = Study("one", agent, Suite("values", (Task("one", "1 + 1?", 2),))).run(tmp_path, progress=False).rows
    assert "by_submission" not in row
    with pytest.raises(StudyError, match=r"no suite 'values'.*of a suite of your own: rescore\(folder, suite="):
        list(rescore(tmp_path))


def test_a_corrected_truth_scores_what_is_recorded_and_keeps_the_old_score(tmp_path: Path) -> None:
    def made(truth: int) -> Study:
        tasks = [Task("sum", "What is 1 and 1?", truth), Task("other", "What is 2 and 2?", 4)]
        return Study("fixed", {"code": ToolLoopAgent(model=ScriptedModel([GOOD.replace("4", "2"), GOOD]))}, tasks)

    first = made(3).run(tmp_path, progress=False)
    assert [row["resolved"] for row in first.rows] == [False, True]
    with pytest.raises(StudyError, match="rescore"):
        made(2).run(tmp_path, progress=False)
    rows = made(2).rescore(tmp_path).rows
    assert [row["resolved"] for row in rows] == [True, True]
    assert [[before["resolved"] for before in row.get("scored_before", [])] for row in rows] == [[False], []]
    assert [row["cost"] for row in rows] == [row["cost"] for row in first.rows]
    before = (tmp_path / "results.jsonl").read_bytes()
    assert made(2).rescore(tmp_path).rows == rows
    assert (tmp_path / "results.jsonl").read_bytes() == before
    corrections = json.loads((tmp_path / "study.json").read_text())["corrections"]
    assert [(c["rows"], c["changed"], c["tasks"]) for c in corrections] == [(1, 1, ["tasks/sum"])]
    assert made(2).run(tmp_path, progress=False).rows == rows  # and the study goes on


# -- whatever a cell answers and whatever its scorer makes of it, a study has a row for it, and reads it again

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
