"""What is tested is declared, locked before the first episode, and refused where it changes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import DirectAgent, Suite, Task
from rlm_loop.messages import Reply
from rlm_loop.models import ScriptedModel
from rlm_loop.study import Analysis, Study, StudyError, load_study


def study(analysis: Analysis | None, tasks: int = 1) -> Study:
    arms = {name: DirectAgent(ScriptedModel([Reply("1")] * 9)) for name in ("one", "two")}
    suite = Suite("sums", tuple(Task(f"t{n}", "What is 1?", expected="1") for n in range(tasks)))
    return Study("mine", arms, suite, analysis=analysis)


def test_it_is_locked_and_is_what_compare_tests(tmp_path: Path) -> None:
    plan = Analysis(baseline="two", margin=0.1, family=("steps",), missing="drop", targets={"rate": 0.8})
    found = study(plan).run(tmp_path, progress=False)
    assert json.loads((tmp_path / "study.json").read_text())["analysis"] == plan.locked()
    assert (found.baseline, found.summary()[0].baseline) == ("two", "two")
    made = load_study(tmp_path).compare()
    assert (made.baseline, made.margin, made.family, made.missing) == ("two", 0.1, ("steps",), "drop")


def test_it_goes_on_unchanged_and_refuses_another(tmp_path: Path) -> None:
    plan = Analysis(margin=0.1)
    study(plan).run(tmp_path, progress=False)
    study(plan, 2).run(tmp_path, progress=False)
    study(None, 3).run(tmp_path, progress=False)
    assert load_study(tmp_path).lock["analysis"] == plan.locked()
    with pytest.raises(StudyError, match=r"declares another analysis \(margin\)"):
        study(replace(plan, margin=0.2), 4).run(tmp_path, progress=False)
    assert len(load_study(tmp_path)) == 6


def test_it_cannot_be_declared_after_the_first_episode(tmp_path: Path) -> None:
    study(None).run(tmp_path, progress=False)
    with pytest.raises(StudyError, match="was begun without analysis="):
        study(Analysis(margin=0.1), 2).run(tmp_path, progress=False)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"family": ("luck",)}, "no measure 'luck'"),
        ({"targets": {"luck": 1.0}}, "'luck' has a target"),
        ({"targets": {"rate": float("nan")}}, "finite"),
        ({"missing": "guess"}, "no policy 'guess'"),
        ({"margin": 3}, "0.03 for 3 points"),
    ],
)
def test_what_cannot_be_tested_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(StudyError, match=said):
        Analysis(**wrong)


def test_a_baseline_that_is_no_arm_is_refused_before_a_call(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="no arm 'three'"):
        study(Analysis(baseline="three")).run(tmp_path, progress=False)
