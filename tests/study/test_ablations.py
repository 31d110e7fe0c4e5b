"""The study of `experiments/ablations`: one setting an arm, declared, and run here by script."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from rlm_loop.models import LocalModel, ScriptedModel
from rlm_loop.study import StudyError, load_study_file
from rlm_loop.study.plan.fairness_check import fairness_check, require_fair

EXPERIMENT = Path(__file__).parents[2] / "experiments" / "ablations"


def test_each_arm_differs_from_its_loop_in_the_one_setting_of_its_name() -> None:
    study = load_study_file(EXPERIMENT, slots=2)
    (arms,) = study.agents().values()
    assert len(arms) == 9
    for name, agent in arms.items():
        loop, _, rest = name.partition("[")
        base = arms[loop]
        changed = {f.name for f in fields(agent) if getattr(agent, f.name) != getattr(base, f.name)}
        setting = rest.partition("=")[0]
        assert changed == ({"model"} if setting == "temperature" else {setting} - {""}), name
        assert type(agent) is type(base)


def test_the_warm_arm_takes_the_same_model_at_another_temperature() -> None:
    study = load_study_file(EXPERIMENT, slots=2, only="code,code[temperature=0.7]")
    (arms,) = study.agents().values()
    cold, warm = (agent.model for agent in arms.values())
    assert isinstance(cold, LocalModel)
    assert isinstance(warm, LocalModel)
    assert cold.name == warm.name
    assert {k for k in cold.sampling if cold.sampling[k] != warm.sampling[k]} == {"temperature"}


def test_what_differs_is_declared_and_needed() -> None:
    study = load_study_file(EXPERIMENT, slots=2)
    found = require_fair(fairness_check(study))
    differing = {d.factor for d in found.differences}
    assert differing == set(study.differs or ())


def test_an_arm_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(StudyError, match=r"no arm 'code\[depth=0\]'; there are code, code\[injectors=thought\]"):
        load_study_file(EXPERIMENT, only="code[depth=0]").agents()


def test_it_runs_by_script(tmp_path: Path) -> None:
    model = ScriptedModel(["```python\nfinal_answer = 1\n```"] * 8)
    study = load_study_file(EXPERIMENT, model=model, tasks=1, only="code,code[max_history=4]")
    results = study.run(tmp_path, progress=False)
    assert len(results) == 6
    assert not results.crashed
    assert results.arms == ["code", "code[max_history=4]"]
