"""The committed study of bugs in checkouts: whole, and every patch of it fits a clean checkout."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rlm_loop.agents.attempts import load_scores
from rlm_loop.report import patch_failure_table
from rlm_loop.study import Results, load_study, load_study_file
from rlm_loop.study.compare.anytime_curves import anytime_of
from rlm_loop.study.compare.patch_failures import diagnose_patches
from rlm_loop.study.compare.patches import study_predictions
from rlm_loop.tasks import Task
from rlm_loop.tasks.package_bugs.bugs import recorded
from rlm_loop.tasks.package_bugs.sdists import cached
from rlm_loop.tasks.swebench import read_predictions

pytestmark = pytest.mark.slow

HERE = Path(__file__).parents[2] / "experiments" / "bug_fixing"


@pytest.fixture(scope="module")
def results() -> Results:
    return load_study(HERE / "results")


@pytest.fixture(scope="module")
def tasks() -> dict[str, Task]:
    return {task.id: task for suite in load_study_file(HERE).suites for task in suite}


def test_every_run_that_failed_has_a_class(results: Results) -> None:
    episodes = diagnose_patches(results, load_study_file(HERE).suites)
    assert len(episodes) == 160
    assert Counter(row["label"] for row in episodes)["repeated"] == 101
    table = patch_failure_table(episodes)
    assert {row[table.columns.index("arm")] for row in table.rows} == set(results.arms)


def test_every_state_was_scored(results: Results) -> None:
    suites = load_study_file(HERE).suites
    runs = anytime_of(results, suites, scores=load_scores(HERE / "results" / "scores.json"))
    assert sum(map(len, runs.values())) == 160
    assert not any(state.resolved for run in runs.values() for one in run for state in one.states)


def test_every_patch_fits_a_clean_checkout(results: Results, tasks: dict[str, Task]) -> None:
    here = {bug.package.name for bug in recorded().bugs if cached(bug.package) is not None}
    applied = 0
    for suite in sorted({row["suite"] for row in results.rows}):
        for arm in results.arms:
            for made in study_predictions(results, arm, suite=suite).rows:
                task = tasks[made.instance_id]
                package = task.facts.get("package")
                if not made.model_patch or (package is not None and package not in here):
                    continue  # that source distribution is not here, and tests do not fetch
                assert task.workspace is not None
                with task.workspace() as space:
                    space.apply(made.model_patch)  # as `git apply`: raises where it does not fit
                    assert space.diff().strip()
                applied += 1
    assert applied >= 7  # those of humaneval-repair at least


def test_predictions_are_read_by_the_official_package(results: Results, tmp_path: Path) -> None:
    made = study_predictions(results, "lean", suite="package_bugs/test")
    path = tmp_path / "predictions.jsonl"
    made.write(path)
    assert [p.instance_id for p in read_predictions(path)] == [p.instance_id for p in made.rows]
    utils: Any = pytest.importorskip("swebench.harness.utils", reason='pip install -e ".[swebench]"')
    read = utils.get_predictions_from_file(str(path), "SWE-bench/SWE-bench_Lite", "test")
    assert {p["instance_id"]: p["model_patch"] for p in read} == {p.instance_id: p.model_patch for p in made.rows}
