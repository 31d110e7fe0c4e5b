"""What a grid is: factors, budgets, order, identity, and the grids that cannot be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_arms import Arm, suite

from rlm_loop import LeanAgent, Suite, Task
from rlm_loop.dialects import Nudge
from rlm_loop.study import Study, StudyError, load_study, load_study_file


def test_every_arm_is_crossed_with_the_factors(tmp_path: Path) -> None:
    systems = {"plain": "", "kind": "Be kind."}
    factors = {"turns": [1, 3], "system": systems}
    results = Study("mine", {"a": Arm("a"), "b": Arm("b")}, suite("s", 2), factors=factors).run(tmp_path, False)
    crossed = {
        f"{arm}[turns={turns}, system={label}]": (arm, turns, {"turns": turns, "system": system})
        for arm in "ab"
        for turns in (1, 3)
        for label, system in systems.items()
    }
    assert results.arms == list(crossed)
    assert [(r["arm_base"], r["steps"], r["factors"]) for r in results.rows] == [
        crossed[r["arm"]] for r in results.rows
    ]
    sizes = results.frame().groupby(["arm_base", "turns", "system"]).size().to_dict()
    assert sizes == {(arm, turns, of["system"]): 2 for arm, turns, of in crossed.values()}
    assert {r["steps"] for r in results.filter(turns=3).rows} == {3}
    assert results.lock["arms"].keys() == set(results.arms)


def test_factors_are_fields_of_real_agents() -> None:
    factors = {"max_depth": [0, 2], "injectors": [(), (Nudge(), Nudge(name="again"))]}
    agents = Study("mine", {"lean": LeanAgent(model="local")}, suite("s", 1), factors=factors).agents()["local", 0]
    assert list(agents)[:2] == ["lean[max_depth=0, injectors=none]", "lean[max_depth=0, injectors=nudge+again]"]
    depths = [(a.subcalls.depth, len(a.injectors)) for a in agents.values()]  # type: ignore[attr-defined]
    assert depths == [(0, 0), (0, 2), (2, 0), (2, 2)]


def test_seeds_of_numpy_are_pythons_own_in_the_rows(tmp_path: Path) -> None:
    results = Study("mine", {"a": Arm()}, suite("s", 1), seeds=numpy.arange(2)).run(tmp_path, False)  # pyright: ignore
    assert [row["seed"] for row in results.rows] == [0, 1]
    assert results.frame()[["arm_base", "error_class"]].to_numpy().tolist() == [["a", None]] * 2
    assert "factors" not in results.rows[0]


def test_a_named_model_has_the_seed_of_its_episodes_however_the_arms_are_made() -> None:
    arms = {"lean": LeanAgent(model="local")}
    for made in (arms, lambda model, seed: arms):  # type: ignore[misc]
        agents = Study("mine", made, suite("s", 1), seeds=(1, 2), model="local").agents()
        assert [agents["local", seed]["lean"].model.seed for seed in (1, 2)] == [1, 2]  # type: ignore[attr-defined]


def test_names_of_any_length_are_files(tmp_path: Path) -> None:
    """A file's name has 255 bytes at most; two long names that begin alike stay two."""
    tasks = Suite("s" * 300, tuple(Task("t" * 300 + end, "?", 1) for end in "ab"))
    results = Study("mine", {"a" * 300: Arm()}, tasks).run(tmp_path, False)
    assert [(row["error"], (tmp_path / row["trace"]).exists()) for row in results.rows] == [(None, True)] * 2
    assert len({row["trace"] for row in results.rows}) == 2


# -- order

NAMES = st.lists(st.text("abcdef", min_size=1), min_size=1, max_size=6, unique=True)


@given(NAMES)
@settings(max_examples=25)
def test_blocks_are_whole_and_an_arm_more_does_not_change_the_order_of_others(names: list[str]) -> None:
    def order(arms: list[str]) -> list[list[str]]:
        tasks = suite("s", 3)
        grid = Study("mine", {a: Arm(a) for a in arms}, tasks, seeds=[0, 1]).episodes()
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


# -- identity


def test_what_a_study_is() -> None:
    study = Study("mine", {"a": Arm(model="x")}, suite("s", 2))
    same: list[dict[str, Any]] = [
        {"question": "Why?", "differs": ("loop",)},
        {"arms": {"a": Arm(model="x", base_url="elsewhere")}},
        {"arms": lambda model, seed: {"a": Arm(model="x")}, "model": "x"},
    ]
    other: list[dict[str, Any]] = [
        *[{"arms": {"a": Arm(model="x", turns=3)}}, {"arms": {"b": Arm(model="x")}}, {"tasks": suite("s", 3)}],
        *[{"name": "yours"}, {"seeds": (0, 1)}, {"model": "y"}, {"factors": {"turns": [2]}}],
    ]
    assert {replace(study, **change).identity for change in same} == {study.identity}
    assert len({study.identity, *(replace(study, **change).identity for change in other)}) == 1 + len(other)


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
    assert from_file.run(tmp_path / "out", False).lock["identity"] == from_file.identity
    before = (tmp_path / "out" / "results.jsonl").read_bytes()
    assert len(episode["here"].run(tmp_path / "out", False)) == 4
    assert (tmp_path / "out" / "results.jsonl").read_bytes() == before


# -- grids that cannot be


TRACE = '"traces/echo/a/s--s-1--0.jsonl"'
OUTSIDE = ["/etc/passwd", "../other/run.jsonl", "traces/../../run.jsonl", "..\\\\run.jsonl"]


def named(*names: str) -> dict[str, Arm]:
    return {n: Arm(n) for n in names}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arms": named("a/b", "a-b")}, "would share the trace"),
        ({"arms": lambda m, s: named(f"x{s}"), "seeds": (0, 1)}, "other arms for local, seed 1"),
        ({"tasks": suite("a", 0)}, "nothing to run: suite 'a' is empty; give tasks"),
        ({"tasks": []}, "it has no suite"),
        ({"tasks": [suite("a", 1)] * 2}, "would share the trace"),
        ({"seeds": ()}, "no arms, models or seeds"),
        ({"seeds": (1, 1)}, "twice"),
        *[({"seeds": seeds}, "study 's': seeds") for seeds in ([None], ["a"], [1.5], "01", 5)],
        *[({"factors": {"max_depth": no_list}}, "give a list") for no_list in ([], "12", 3)],
        ({"factors": {"max_depth": [1, 1]}}, "two values of one label"),
        ({"arms": {"lean": LeanAgent()}, "factors": {"max_depth": [-1]}}, "arm 'lean': .*depth.* must be"),
    ],
)
def test_grids_that_cannot_be(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(StudyError, match=message) as refused:
        replace(Study("s", named("x"), suite("a", 1)), **change).run(tmp_path / "out", False)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("study.json", '"schema": 1', '"schema": 7', "schema 7.*upgrade"),
        ("study.json", '"schema": 1', '"schema": "x"', "schema x"),
        ("study.json", '"tasks": {', '"jobs": {', "no tasks"),
        ("results.jsonl", '"schema":1', '"schema":7', "schema 7.*upgrade"),
        ("results.jsonl", '"suite":', '"set":', r"results\.jsonl:2 is damaged, or no row.*suite: "),
        *[("results.jsonl", TRACE, f'"{path}"', r"jsonl:2 .*trace: ") for path in OUTSIDE],
    ],
)
def test_folders_of_other_versions_or_that_lead_outside_are_refused_and_left_alone(
    tmp_path: Path, file: str, old: str, new: str, message: str
) -> None:
    study = Study("mine", {"a": Arm()}, suite("s", 1))
    study.run(tmp_path, False)
    path = tmp_path / file
    path.write_text(path.read_text().replace(old, new))
    before = path.read_bytes()
    for read in (lambda: load_study(tmp_path), lambda: study.run(tmp_path, False)):
        with pytest.raises(StudyError, match=message) as refused:
            read()
        assert "\n" not in str(refused.value)
    assert path.read_bytes() == before
