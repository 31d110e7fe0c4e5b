"""The committed study of three loops on a hundred tasks: whole, fair, and its README says what `compare` says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from rlm_loop.study import Analysis, Results, load_study, load_study_file, verify_traces
from rlm_loop.study.store.reading import read_contract

HERE = Path(__file__).parents[2] / "experiments" / "headline"


@pytest.fixture(scope="module")
def results() -> Results:
    return load_study(HERE / "results")


def test_a_hundred_tasks_in_three_loops_by_the_real_model(results: Results) -> None:
    assert (len(results), results.left_out, results.crashed) == (300, 0, [])
    assert {row["model"] for row in results.rows} == {"local:qwen2.5-coder-1.5b"}
    assert Counter(row["arm"] for row in results.rows) == dict.fromkeys(("lean", "react-text", "code"), 100)
    assert len({(row["suite"], row["task"]) for row in results.rows}) == 100
    assert verify_traces(HERE / "results") == []


def test_it_is_what_the_file_makes_and_fair(results: Results) -> None:
    tasks = {(suite.name, task.id) for suite in load_study_file(HERE).suites for task in suite}
    assert {(row["suite"], row["task"]) for row in results.rows} == tasks
    contract = read_contract(HERE / "results")
    assert contract is not None
    assert contract.fair


def test_the_finding_is_what_the_results_say(results: Results) -> None:
    pytest.importorskip("scipy")
    readme = (HERE / "README.md").read_text("utf-8")
    plan = load_study_file(HERE).analysis
    assert plan == Analysis(baseline="react-text", margin=0.03), "as its README says that it was declared"
    for sentence in results.compare(analysis=plan).sentences():
        assert sentence in readme
