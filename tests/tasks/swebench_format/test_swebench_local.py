"""Patches judged on this machine, by the tests of an instance."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from made_instances import Made, row, write_rows

from rlm_loop.tasks import Attempt, get_suite

pytest.importorskip("rlm_loop.workspace.evaluation")


@pytest.mark.slow
def test_the_reference_resolves_and_other_patches_do_not(repos: Path, calc: Made, tmp_path: Path) -> None:
    right = row(calc)
    path = write_rows(tmp_path / "a.jsonl", right)
    (task,) = get_suite(f"swebench:{path}", repos=repos, python=sys.executable)
    wrong = right["patch"].replace("a + b", "a * b")
    assert task.score(Attempt(artifact=right["patch"])).resolved is True
    score = task.score(Attempt(artifact=wrong))
    assert score.resolved is False
    assert score.evidence["tests"]["tests/test_calc.py::test_two"] == "failed"
