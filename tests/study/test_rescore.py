"""One recorded run, scored by each contract that its task knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlm_loop import LeanAgent, Study, ToolLoopAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.study import StudyError, rescore
from rlm_loop.tasks import Suite, Task, get_suite

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
        model = ScriptedModel(["```python\nfinal_answer = 2\n```", "```python\nfinal_answer = 4\n```"])
        return Study("fixed", {"code": ToolLoopAgent(model=model)}, tasks)

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
