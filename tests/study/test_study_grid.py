"""What a grid is: factors, budgets, order, identity, and the grids that cannot be."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_arms import Arm, suite

from rlm_loop import Budget, LeanAgent, Suite, Task
from rlm_loop.dialects import Nudge
from rlm_loop.study import Study, StudyError, load_study, load_study_file


def test_every_arm_is_crossed_with_the_factors(tmp_path: Path) -> None:
    factors = {"turns": [1, 3], "system": {"plain": "", "kind": "Be kind."}}
    results = Study("mine", {"a": Arm("a"), "b": Arm("b")}, suite("s", 2), factors=factors).run(tmp_path, False)
    assert results.arms == [
        f"{arm}[turns={turns}, system={system}]" for arm in "ab" for turns in (1, 3) for system in ("plain", "kind")
    ]
    assert len(results) == 2 * 4 * 2
    for row in results.rows:
        assert row["steps"] == row["factors"]["turns"]
        assert (
            row["arm"]
            == f"{row['arm_base']}[turns={row['steps']}, system={'kind' if row['factors']['system'] else 'plain'}]"
        )
    frame = results.frame()
    assert frame.groupby(["arm_base", "turns", "system"]).size().to_dict() == {
        (arm, turns, system): 2 for arm in "ab" for turns in (1, 3) for system in ("", "Be kind.")
    }
    assert json.loads((tmp_path / "study.json").read_text())["arms"].keys() == set(results.arms)


def test_a_study_without_factors_has_the_columns_that_readers_count_on(tmp_path: Path) -> None:
    results = Study("mine", {"a": Arm()}, suite("s", 1)).run(tmp_path, False)
    assert "factors" not in results.rows[0]
    assert list(results.frame()["arm_base"]) == ["a"]
    assert list(results.frame()["error_class"]) == [None]


def test_factors_are_fields_of_real_agents() -> None:
    factors = {"max_depth": [0, 2], "injectors": [(), (Nudge(), Nudge(name="again"))]}
    agents = Study("mine", {"lean": LeanAgent(model="local")}, suite("s", 1), factors=factors).agents()["local", 0]
    assert list(agents)[:2] == ["lean[max_depth=0, injectors=none]", "lean[max_depth=0, injectors=nudge+again]"]
    depths = [(a.subcalls.depth, len(a.injectors)) for a in agents.values()]  # type: ignore[attr-defined]
    assert depths == [(0, 0), (0, 2), (2, 0), (2, 2)]


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ({"turns": []}, "give a list"),
        ({"turns": [1, 1]}, "two values of one label"),
        ({"turns": "12"}, "give a list"),
        ({"turns": 3}, "give a list"),
        ({"model": ["a"]}, r"use model=\[...\] instead"),
        ({"seed": [1]}, r"use seeds=\[...\] instead"),
        ({"depth": [1]}, r"arm 'a' \(Arm\) has no field 'depth'; it has after_one_call"),
    ],
)
def test_factors_that_cannot_be(factors: Any, message: str) -> None:
    with pytest.raises(StudyError, match=message) as refused:
        Study("mine", {"a": Arm()}, suite("s", 1), factors=factors).agents()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("seeds", [[None], ["a"], [1.5], "01", 5])
def test_seeds_are_whole_numbers(seeds: Any) -> None:
    with pytest.raises(StudyError, match="study 'mine': seeds"):
        Study("mine", {"a": Arm()}, suite("s", 1), seeds=seeds)


def test_seeds_of_numpy_are_pythons_own_in_the_rows(tmp_path: Path) -> None:
    results = Study("mine", {"a": Arm()}, suite("s", 1), seeds=numpy.arange(2)).run(tmp_path, False)  # pyright: ignore
    assert [row["seed"] for row in results.rows] == [0, 1]


def test_a_named_model_has_the_seed_of_its_episodes_however_the_arms_are_made() -> None:
    arms = {"lean": LeanAgent(model="local")}
    for made in (arms, lambda model, seed: arms):  # type: ignore[misc]
        agents = Study("mine", made, suite("s", 1), seeds=(1, 2), model="local").agents()
        assert [agents["local", seed]["lean"].model.seed for seed in (1, 2)] == [1, 2]  # type: ignore[attr-defined]


def test_a_value_that_an_agent_refuses_names_the_arm() -> None:
    with pytest.raises(StudyError, match=r"arm 'lean': .*depth.* must be"):
        Study("mine", {"lean": LeanAgent()}, suite("s", 1), factors={"max_depth": [-1]}).agents()


def test_a_budget_holds_for_every_episode() -> None:
    study = Study(
        "mine", {"a": LeanAgent(), "b": LeanAgent(budget=Budget(steps=9))}, suite("s", 1), budget=Budget(steps=2)
    )
    assert {a.budget.steps for a in study.agents()["local", 0].values()} == {2}  # type: ignore[attr-defined]
    with pytest.raises(StudyError, match=r"arm 'x'.*has no field 'budget'"):
        replace(study, arms={"x": Arm()}).agents()


def test_names_of_any_length_are_files(tmp_path: Path) -> None:
    """A file's name has 255 bytes at most; two long names that begin alike stay two."""
    tasks = Suite("s" * 300, tuple(Task("t" * 300 + end, "?", 1) for end in "ab"))
    results = Study("mine", {"a" * 300: Arm()}, tasks).run(tmp_path, False)
    assert [row["error"] for row in results.rows] == [None, None]
    assert all((tmp_path / row["trace"]).exists() for row in results.rows)
    assert len({row["trace"] for row in results.rows}) == 2


# -- order

NAMES = st.lists(st.text("abcdef", min_size=1), min_size=1, max_size=6, unique=True)


@given(NAMES, st.integers(0, 5))
@settings(max_examples=25)
def test_blocks_are_whole_and_an_arm_more_does_not_change_the_order_of_others(names: list[str], seed: int) -> None:
    def order(arms: list[str]) -> list[list[str]]:
        tasks = suite("s", 3)
        grid = Study("mine", {a: Arm(a) for a in arms}, tasks, seeds=[0, 1], order_seed=seed).episodes()
        assert [(c.task.id, c.seed) for c in grid] == [(t.id, s) for t in tasks for s in (0, 1) for _ in arms]
        return [[c.arm for c in grid[i : i + len(arms)]] for i in range(0, len(grid), len(arms))]

    blocks = order(names)
    assert all(sorted(block) == sorted(names) for block in blocks)
    assert blocks == order(names[::-1])  # the order in which arms are declared has no part in it
    assert blocks == [[a for a in block if a != "new"] for block in order([*names, "new"])]


def test_chance_treats_arms_alike() -> None:
    study = Study("mine", {n: Arm(n) for n in "abc"}, suite("s", 300))
    first = [c.arm for c in study.episodes()[::3]]
    assert all(70 < first.count(n) < 130 for n in "abc")  # 100 expected, standard deviation 8.2
    assert [c.arm for c in study.episodes()] == [c.arm for c in study.episodes()]
    assert [c.arm for c in study.episodes()] != [c.arm for c in replace(study, order_seed=1).episodes()]
    assert [c.arm for c in replace(study, order_seed=None).episodes()] == list("abc") * 300


# -- identity


def test_what_a_study_is() -> None:
    study = Study("mine", {"a": Arm(model="x")}, suite("s", 2))
    same: list[Study] = [
        replace(study, question="Why?", order_seed=7, differs=("loop",)),
        replace(study, arms={"a": Arm(model="x", base_url="elsewhere")}),
        replace(study, arms=lambda model, seed: {"a": Arm(model="x")}, model="x"),
    ]
    other: list[Study] = [
        replace(study, name="yours"),
        replace(study, arms={"a": Arm(model="x", turns=3)}),
        replace(study, arms={"b": Arm(model="x")}),
        replace(study, tasks=suite("s", 3)),
        replace(study, seeds=(0, 1)),
        replace(study, model="y"),
        replace(study, factors={"turns": [2]}),
    ]
    assert {s.identity for s in same} == {study.identity}
    assert len({s.identity for s in [study, *other]}) == 1 + len(other)


def test_the_folder_says_what_and_why(tmp_path: Path) -> None:
    study = Study("mine", {"a": Arm()}, suite("s", 1), question="Does it?")
    study.run(tmp_path, False)
    lock = load_study(tmp_path).lock
    assert (lock["question"], lock["identity"]) == ("Does it?", study.identity)
    replace(study, question="Does it really?").run(tmp_path, False)
    assert load_study(tmp_path).lock["question"] == "Does it really?"


FILE = """
from study_arms import Arm, suite
from rlm_loop.study import Study
def study():
    return Study("mine", {"a": Arm("a", 1), "b": Arm("b", 2)}, suite("s", 2))
"""


def test_a_study_of_a_notebook_is_that_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "study.py").write_text(FILE)
    episode: dict[str, Any] = {"__name__": "__main__"}
    exec(FILE + "here = study()", episode)
    from_file = load_study_file(tmp_path)
    assert episode["here"].identity == from_file.identity
    from_file.run(tmp_path / "out", False)
    before = (tmp_path / "out" / "results.jsonl").read_bytes()
    assert len(episode["here"].run(tmp_path / "out", False)) == 4
    assert (tmp_path / "out" / "results.jsonl").read_bytes() == before


def test_a_study_can_be_copied_and_sent() -> None:
    study = Study("mine", {"a": Arm()}, Suite("s", ()), seeds=(1, 2))
    for made in (copy.copy(study), copy.deepcopy(study), pickle.loads(pickle.dumps(study)), replace(study)):
        assert made == study


# -- grids that cannot be


def named(*names: str) -> dict[str, Arm]:
    return {n: Arm(n) for n in names}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Study("s", named("x", " "), suite("a", 1)), "give it a name"),
        (lambda: Study("s", named("a/b", "a-b"), suite("a", 1)), "would share the trace"),
        (lambda: Study("s", named("x"), suite("a", 0)), "nothing to run: suite 'a' is empty; give tasks"),
        (lambda: Study("s", named("x"), [suite("a", 1), suite("b", 0)]), "suite 'b' is empty"),
        (lambda: Study("s", named("x"), []), "it has no suite"),
        (lambda: Study("s", {}, suite("a", 1)), "no arms"),
        (lambda: Study("s", named("x"), suite("a", 1), seeds=()), "no arms, models or seeds"),
        (lambda: Study("s", named("x"), suite("a", 1), seeds=(1, 1)), "twice"),
        (lambda: Study("s", named("x"), [suite("a", 1)] * 2), "would share the trace"),
        (lambda: Study("s", lambda m, s: named(f"x{s}"), suite("a", 1), seeds=(0, 1)), "other arms for local, seed 1"),
    ],
)
def test_grids_that_cannot_be(tmp_path: Path, make: Callable[[], Study], message: str) -> None:
    with pytest.raises(StudyError, match=message) as refused:
        make().run(tmp_path / "out", False)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "out").exists()


@dataclass
class Damage:
    file: str
    change: Callable[[str], str]
    message: str


@pytest.mark.parametrize(
    "damage",
    [
        Damage("study.json", lambda t: t.replace('"schema": 1', '"schema": 7'), "schema 7.*upgrade"),
        Damage("study.json", lambda t: t.replace('"schema": 1', '"schema": "x"'), "schema x"),
        Damage("study.json", lambda t: t.replace('"tasks": {', '"jobs": {'), "no tasks"),
        Damage("results.jsonl", lambda t: t.replace('"schema":1', '"schema":7'), "schema 7.*upgrade"),
        Damage(
            "results.jsonl",
            lambda t: t.replace('"suite":', '"set":'),
            r"results\.jsonl:2 is damaged, or no row.*suite: ",
        ),
    ],
    ids=lambda d: d.message,
)
def test_folders_of_other_versions_are_refused_and_left_alone(tmp_path: Path, damage: Damage) -> None:
    study = Study("mine", {"a": Arm()}, suite("s", 1))
    study.run(tmp_path, False)
    path = tmp_path / damage.file
    path.write_text(damage.change(path.read_text()))
    before = path.read_bytes()
    for read in (lambda: load_study(tmp_path), lambda: study.run(tmp_path, False)):
        with pytest.raises(StudyError, match=damage.message) as refused:
            read()
        assert "\n" not in str(refused.value)
    assert path.read_bytes() == before
