"""What is tested is declared, locked before the first episode, and refused where it changes."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from paired_rows import paired

from rlm_loop import DirectAgent, Suite, Task
from rlm_loop.messages import Reply, digest
from rlm_loop.models import ScriptedModel
from rlm_loop.report import study_page
from rlm_loop.report.figures import paired_differences
from rlm_loop.study import Analysis, Results, Study, StudyError, compare, load_study, sequential

TENTH = Analysis(margin=0.1)


def study(analysis: Analysis | None, tasks: int = 1) -> Study:
    arms = {name: DirectAgent(ScriptedModel([Reply("1")] * 9)) for name in ("one", "two")}
    suite = Suite("sums", tuple(Task(f"t{n}", "What is 1?", expected="1") for n in range(tasks)))
    return Study("mine", arms, suite, analysis=analysis)


def ran(folder: Path, analysis: Analysis | None = TENTH, tasks: int = 1, limit: int | None = None) -> Results:
    return study(analysis, tasks).run(folder, progress=False, limit=limit)


def test_it_is_locked_and_is_what_compare_tests(tmp_path: Path) -> None:
    plan = Analysis(baseline="two", margin=0.1, family=("steps",), missing="bounds")
    ran(tmp_path, plan)
    assert json.loads((tmp_path / "study.json").read_text())["analysis"] == plan.locked()
    made = load_study(tmp_path).compare()
    assert (made.baseline, made.margin, made.family, made.missing) == ("two", 0.1, ("steps",), "bounds")
    assert Analysis("lean").locked()["digest"] == "b0071f10f89789a5"  # as experiments/mcp_as_code has it


def test_it_is_declared_before_the_first_episode_goes_on_unchanged_and_refuses_another(tmp_path: Path) -> None:
    for tasks, plan in enumerate((TENTH, TENTH, None), 1):
        ran(tmp_path, plan, tasks)
    assert load_study(tmp_path).lock["analysis"] == TENTH.locked()
    with pytest.raises(StudyError, match=r"declares another analysis \(margin\)"):
        ran(tmp_path, replace(TENTH, margin=0.2), 4)
    assert len(load_study(tmp_path)) == 6
    with pytest.raises(StudyError, match="no arm 'three'"):
        ran(tmp_path / "baseline", Analysis(baseline="three"))
    ran(tmp_path / "undeclared", None)
    with pytest.raises(StudyError, match="was begun without analysis="):
        ran(tmp_path / "undeclared", tasks=2)


def test_a_plan_that_was_changed_after_it_was_locked_judges_nothing(tmp_path: Path) -> None:
    assert not compare(ran(tmp_path)).exploratory
    path = tmp_path / "study.json"
    path.write_text(path.read_text().replace('"margin": 0.1', '"margin": 0.3'))
    compared = compare(load_study(tmp_path))
    assert compared.exploratory
    assert "study.json is not the one that was locked before the run" in compared.verdicts[0]


def caption(made: Any) -> str:
    return str(made._supxlabel.get_text()).replace("\n", " ")


def test_what_nobody_declared_is_exploratory_and_has_no_margin() -> None:
    results = Results(paired([("y", "n")] * 30 + [("n", "n")] * 10).rows)
    made = compare(results)
    assert (made.baseline, made.margin, made.family, made.exploratory) == ("base", 0, (), True)
    (said,) = made.verdicts
    assert said.startswith("Exploratory: this analysis was not declared")
    assert said.endswith("so no claim is judged; 2 of 2 intervals exclude no difference.")
    assert " p = " not in "".join(made.sentences()[:-1])
    assert set(sequential(results, "lean")["decision"]) == {"go on", "more"}
    assert "shaded" not in caption(paired_differences(results))
    assert "Exploratory: this analysis was not declared" in study_page(results)


def test_what_was_declared_is_tested_without_being_asked_for() -> None:
    results = paired([("y", "y")] * 300 + [("y", "n")] * 30)
    made = compare(results)
    assert (made.baseline, made.margin, made.exploratory) == ("base", 0.03, False)
    assert "xploratory" not in str(made) + study_page(results)
    assert "no more than 3 points fewer" in set(sequential(results, "lean")["decision"])
    assert "shaded: fewer by more than 3 points" in caption(paired_differences(results))


def test_the_declared_baseline_is_that_of_every_part() -> None:
    made = paired([("y", "n")] * 12)
    results = replace(made, lock={**made.lock, "analysis": Analysis("lean").locked()})
    assert set(sequential(results, "base")["baseline"]) == {"lean"}
    assert "base against lean" in study_page(results)
    assert compare(results).baseline == results.summary()[0].baseline == "lean"


def test_another_analysis_than_the_declared_one_is_exploratory() -> None:
    results = paired([("y", "y")] * 20)
    assert [compare(results, base).exploratory for base in ("lean", "base", None)] == [True, False, False]
    afterwards = compare(Results(results.rows), analysis=Analysis("lean", margin=0.2, family=("steps",)))
    assert (afterwards.baseline, afterwards.margin, afterwards.family) == ("lean", 0.2, ("steps",))
    assert (afterwards.exploratory, "as if declared" in afterwards.departs) == (True, True)
    assert not any(said.startswith("Shown") for said in afterwards.sentences())


def test_a_subset_of_a_declared_study_shows_nothing(tmp_path: Path) -> None:
    results = ran(tmp_path, tasks=4)
    assert not compare(results).exploratory
    for part in (compare(results.filter(task=tasks)) for tasks in (["t0", "t1"], "t0")):
        assert ("subset" in part.departs, part.exploratory) == (True, True)
    assert results.filter(suite="sums") is results  # all of them
    assert not compare(results.only("one", "two")).exploratory


def test_a_look_before_the_end_is_an_interim_one_and_what_comes_later_was_not_declared(tmp_path: Path) -> None:
    assert "interim look: 1 of 2 planned pairs" in compare(ran(tmp_path, tasks=2, limit=1)).departs
    assert compare(ran(tmp_path, tasks=2)).departs == ""
    more = ran(tmp_path, tasks=3)
    assert "1 of 3 pairs (model, task, seed) were added" in compare(more).departs
    third = replace(more, rows=[*more.rows, *({**row, "arm": "three"} for row in more.rows if row["arm"] == "two")])
    assert "three was added" in compare(third).departs


def test_the_models_of_one_arm_are_compared_as_declared(tmp_path: Path) -> None:
    models = [ScriptedModel([Reply("1")] * 9, name=name) for name in ("A", "B")]
    found = Study("mine", {"one": DirectAgent()}, Task("t", "What is 1?", "1"), model=models, analysis=Analysis())
    made = found.run(tmp_path, progress=False).compare()
    assert (made.baseline, made.contrasts[0].arm, made.departs, made.exploratory) == ("one A", "one B", "", False)


@pytest.mark.slow
def test_equal_arms_are_shown_to_differ_in_one_study_of_twenty_whatever_is_looked_at() -> None:
    """Two hundred studies of two equal arms: all looks after ten tasks each, a subset of every study, and the end."""
    tasks = [f"t{n}" for n in range(50)]
    plan = Analysis("base", family=("resolved",)).locked()
    planned: dict[str, Any] = {"arms": ["base", "lean"], "models": ["local:m"], "tasks": {"s": tasks}, "seeds": [0]}
    lock = {"analysis": plan, "planned": {**planned, "digest": digest(planned)[:16]}}
    unknown = dict.fromkeys(("input_tokens", "output_tokens", "cost", "seconds", "steps"))
    rng, early, wrong = random.Random(0), 0, 0
    for _ in range(200):
        rows = [{**row, **unknown} for row in paired([(rng.choice("yn"), rng.choice("yn")) for _ in tasks]).rows]
        whole = Results(rows, lock)
        looks = [replace(whole, rows=rows[: 20 * n]) for n in range(1, 5)]
        parts = [whole.filter(task=tasks[::2])]
        early += any(said.startswith("Shown") for of in (*looks, *parts) for said in compare(of).verdicts)
        wrong += compare(whole).verdicts[0].startswith("Shown")
    assert (early, 0 < wrong <= 10) == (0, True)


def test_power_is_said_before_a_study_runs() -> None:
    found = study(Analysis(family=("resolved",)), 128).power(discordant=(0.2,))
    assert (found.tasks, found.claims, found.level) == (128, 1, 0.05)
    (tenth,) = (chance for chance in found.chances if chance.difference == 0.1)
    assert (0 < tenth.chance < 0.8, tenth.tasks > 128) == (True, True)
    assert "128 tasks to show that an arm resolves more or fewer" in str(found)
