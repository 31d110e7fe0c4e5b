"""The study of ten SWE-bench instances: its grid, its plan, what a dry run proves, and what ten tasks can show."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from rlm_loop.messages import Prompt, Reply, ToolCall
from rlm_loop.models import ScriptedModel
from rlm_loop.study import load_study_file
from rlm_loop.study.compare.patches import study_predictions
from rlm_loop.study.statistics import sign_test

HERE = Path(__file__).parents[2] / "experiments" / "swebench_lite"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"swebench_lite_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


@pytest.fixture
def dry_run(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    before = sys.modules.pop("study", None)
    monkeypatch.setattr(sys, "path", [str(HERE), *sys.path])
    yield script("dry_run")
    sys.modules.pop("study", None)
    if before is not None:
        sys.modules["study"] = before


def test_a_dry_run_says_that_all_is_as_declared(dry_run: ModuleType, tmp_path: Path) -> None:
    instances, repos = dry_run.stand_ins(tmp_path)
    lines, right = dry_run.said(["ollama/a", "ollama/b"], instances, repos)
    assert right
    assert lines[0] == "30 episodes: lean, code, react"
    assert "as declared" in lines[1]
    assert lines[2].endswith(" ".join(dry_run.INSTANCES))
    assert "--dataset_name SWE-bench/SWE-bench_Lite" in lines[2]
    assert ["price unknown" in line for line in lines[3:]] == [True, True]
    assert sorted(dry_run.INSTANCES)[0] == "astropy__astropy-12907"


def test_an_instance_that_is_not_there_is_no_smaller_study(dry_run: ModuleType, tmp_path: Path) -> None:
    instances, repos = dry_run.stand_ins(tmp_path)
    file = Path(instances)
    file.write_text("".join(file.read_text("utf-8").splitlines(keepends=True)[:-1]), "utf-8")
    with pytest.raises(ValueError, match="django__django-11039"):
        dry_run.said(["ollama/a"], instances, repos)


def test_it_runs_and_leaves_patches_to_the_harness(dry_run: ModuleType, tmp_path: Path) -> None:
    instances, repos = dry_run.stand_ins(tmp_path)
    edit = {"path": "package/values.py", "start_line": 5, "end_line": 5, "replacement": "    return list(values)[0]"}
    said = ", ".join(f"{name}={value!r}" for name, value in edit.items())

    def reply(prompt: Prompt) -> Reply:
        if not prompt.tools:
            return Reply(f"```python\napply_edit({said})\nfinal_answer = 'done'\n```")
        calls = (("apply_edit", edit), ("final_answer", {"answer": "done"}))
        return Reply("", tuple(ToolCall(name, name, json.dumps(given)) for name, given in calls))

    model = ScriptedModel([reply] * 10)
    study = load_study_file(HERE, model=model, instances=instances, repos=repos, clone=False)
    results = study.run(tmp_path / "run", False, limit=1)
    assert [r["error"] for r in results.rows] == [None] * 3
    assert [r["resolved"] for r in results.rows] == [None] * 3
    assert all("rlm-loop swebench evaluate" in r["score_reason"] for r in results.rows)
    for arm in ("lean", "code", "react"):
        (patch,) = study_predictions(tmp_path / "run", arm).rows
        assert "+    return list(values)[0]" in patch.model_patch


def test_what_ten_tasks_can_show(dry_run: ModuleType) -> None:
    power = script("power")
    assert power.least(5) is None
    assert [power.least(d) for d in (6, 8, 10)] == [6, 8, 9]
    assert power.power(10, 0.2, 0.0) == pytest.approx(0.0064, abs=0.0002)
    by_hand = sum(
        0.9**d * 0.1 ** (10 - d) * n
        for d, n in ((6, 210), (7, 120), (8, 45), (9, 10), (10, 1))
        if sign_test(d, 0) <= 0.05
    )
    assert power.power(10, 0.9, 0.0) == pytest.approx(by_hand)
    needed = power.needed(0.7, 0.0)
    assert needed == 10
    assert power.power(needed - 1, 0.7, 0.0) < 0.8
    assert "| 20% | 0% | +20 | 0.6% |" in (HERE / "README.md").read_text("utf-8")
