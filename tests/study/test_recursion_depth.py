"""The studies of long contexts: their grids, their arms, and that they run with the agents as they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rlm_loop.models import ScriptedModel
from rlm_loop.report import failure_table
from rlm_loop.study import StudyError, diagnose_episodes, load_study, load_study_file, verify_traces

HERE = Path(__file__).parents[2] / "experiments" / "recursion_depth"


def test_the_grid_is_five_families_two_sizes_two_arms() -> None:
    episodes = load_study_file(HERE).episodes()
    assert len(episodes) == 40
    assert len({c.task.facts["family"] for c in episodes}) == 5
    assert {c.task.facts["size"] for c in episodes} == {8_000, 128_000}
    assert {c.arm for c in episodes} == {"direct", "depth-0"}
    assert all(c.suite.endswith("/test") for c in episodes)
    assert len({c.task.id for c in episodes[:20]}) == 10  # one round through all families and sizes first
    other = load_study_file(HERE, split="dev", only="direct,depth-0,depth-1,depth-2", sizes=["32k"], tasks=1)
    assert len(other.episodes()) == 5 * 4
    assert not {c.task.id for c in other.episodes()} & {c.task.id for c in episodes}


def test_the_arms_are_what_they_are_called() -> None:
    made = load_study_file(HERE, only="direct,depth-0,depth-1,depth-2").agents()["local", 0]
    settings = {name: agent.settings() for name, agent in made.items()}
    assert [settings[f"depth-{d}"]["max_depth"] for d in range(3)] == [0, 1, 2]
    assert settings["direct"]["window"] == 8_000
    assert settings["depth-1"] | {"max_depth": 2} == settings["depth-2"]
    with pytest.raises(StudyError, match="there is no arm 'depth-3'; there are direct, depth-0"):
        load_study_file(HERE, only="depth-3").agents()


def test_it_runs(tmp_path: Path) -> None:
    (suite,) = load_study_file(HERE, families="records", sizes="8k", tasks=1).suites
    truth = suite.tasks[0].expected
    model = ScriptedModel([f"There are {truth}.", f"```python\nfinal_answer = {truth} * (len(context) == 8000)\n```"])
    study = load_study_file(HERE, model=model, families="records", sizes="8k", tasks=1)
    results = replace(study, order_seed=None).run(tmp_path, False)  # the script is in the order of the arms
    assert results.crashed == []
    assert [r["resolved"] for r in results.rows] == [True, True]
    assert all("documentation strings of Python" in r["facts"]["context"] for r in results.rows)
    assert verify_traces(tmp_path) == []


def test_the_oracle_is_called_one_and_runs(tmp_path: Path) -> None:
    study = load_study_file(HERE / "oracle_study.py", families="classify", sizes="32k", tasks=1)
    study = replace(study, order_seed=None)  # the scripts are in the order of the arms
    assert [c.arm for c in study.episodes()] == ["direct", "depth-0", "depth-1", "depth-2"]
    arms = {name: agent for name, agent in study.agents()[study.models[0].name, 0].items() if name != "depth-2"}
    few = type(study)(study.name, arms, study.suites, study.seeds, order_seed=None)
    results = few.run(tmp_path, False)
    assert results.crashed == []
    assert {r["arm"]: r["resolved"] for r in results.rows} == {"direct": False, "depth-0": False, "depth-1": True}
    assert all("oracle" in r["model"] and "oracle" in r["model_name"] for r in results.rows)
    assert results.rows[2]["calls"] == 6


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(StudyError, match="has no option sises"):
        load_study_file(HERE, sises="8k")


def test_the_real_results_say_why_they_failed() -> None:
    results = load_study(HERE / "results")
    assert {arm: sum(bool(r["resolved"]) for r in results.rows if r["arm"] == arm) for arm in results.arms} == {
        "direct": 2,
        "depth-0": 5,
    }
    try:
        episodes = diagnose_episodes(results, load_study_file(HERE).suites)
    except StudyError as error:  # the texts are this Python's documentation strings
        pytest.skip(str(error))
    assert len(episodes) == 40
    table = failure_table(episodes)
    assert [row[:4] for row in table.rows] == [
        ["8k", "direct", "10", "2"],
        ["8k", "depth-0", "10", "2"],
        ["128k", "direct", "10", "-"],
        ["128k", "depth-0", "10", "3"],
    ]
    never = {(row["arm"], row["size"]) for row in episodes if row["reason"] == "never_looked"}
    assert ("depth-0", 8_000) in never
    assert ("direct", 8_000) not in never  # it was shown the whole text


def test_failures_need_tasks_that_name_places() -> None:
    results = load_study(HERE.parent / "lean_vs_react" / "results")
    with pytest.raises(StudyError, match="names the places"):
        diagnose_episodes(results, [])


def test_nobody_asked_a_sub_model() -> None:
    assert all(row["calls"] == row["steps"] for row in load_study(HERE / "results" / "subcalls").rows)
