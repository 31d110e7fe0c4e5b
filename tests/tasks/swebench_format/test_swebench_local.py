"""Patches judged on this machine, by the tests of an instance."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from made_instances import Made, row, write_rows

from rlm_loop.cli.main import main
from rlm_loop.tasks import get_suite
from rlm_loop.tasks.base import Attempt
from rlm_loop.tasks.jsonl import SuiteFileError
from rlm_loop.tasks.swebench import Prediction, Predictions, evaluate_here, read_report, write_report

pytest.importorskip("rlm_loop.workspace.evaluation")


@pytest.mark.slow
def test_the_reference_resolves_and_other_patches_do_not(repos: Path, calc: Made, tmp_path: Path) -> None:
    right = row(calc)
    path = write_rows(tmp_path / "a.jsonl", right)
    (task,) = suite = get_suite(f"swebench:{path}", repos=repos, python=sys.executable, place="plain")
    wrong = right["patch"].replace("a + b", "a * b")
    assert task.score(Attempt(artifact=right["patch"])).resolved is True
    score = task.score(Attempt(artifact=wrong))
    assert score.resolved is False
    assert score.evidence["tests"]["tests/test_calc.py::test_two"] == "failed"
    found = evaluate_here([Prediction(task.id, "m", right["patch"])], suite)
    assert (found.statuses, found.rate) == ({task.id: "resolved"}, 1.0)
    with pytest.raises(ValueError, match="run_tests needs an environment for local__calc-1"):
        get_suite(f"swebench:{path}", repos=repos, run_tests=True)
    (other,) = get_suite(f"swebench:{path}", repos=repos, run_tests=True, python=sys.executable, place="plain")
    with other.workspace() as space:  # type: ignore[misc]
        tool = space.tools()[-1]
        assert tool.name == "run_tests"  # type: ignore[attr-defined]
        assert "test_two" not in tool("tests")  # that one comes with the solution
    with pytest.raises(SuiteFileError, match="has no instance 'x'"):
        evaluate_here([Prediction("x", "m", "")], suite)


def test_the_command_judges_here(repos: Path, calc: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = row(calc)
    dataset = write_rows(tmp_path / "a.jsonl", right, row(calc, "local__calc-2"), row(calc, "local__calc-3"))
    rows = (Prediction("local__calc-1", "m/x", right["patch"]), Prediction("local__calc-2", "m/x", ""))
    file = Predictions(rows).write(tmp_path / "preds.jsonl")
    words = ["swebench", "evaluate", str(file), "--dataset", str(dataset), "--folder", str(tmp_path / "out")]
    assert main([*words, "--python", sys.executable, "--repos", str(repos)]) == 0
    out = capsys.readouterr().out
    assert "2 submitted: 1 resolved, 0 unresolved, 1 empty, 0 error (50% of the submitted are resolved)" in out
    written = tmp_path / "out" / "m__x.rlm-loop.json"
    assert json.loads(written.read_text())["resolved_ids"] == ["local__calc-1"]
    assert read_report(written).ids("empty") == ["local__calc-2"]
    again = write_report(read_report(written), tmp_path / "again.json")
    assert json.loads(again.read_text()) == json.loads(written.read_text())
    assert main([*words, "--python", sys.executable]) == 2
    assert "--python and --repos belong together" in capsys.readouterr().err
