"""`results.filter(...)` and `results.plot(...)`: what a reader asks of results without learning another module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from study_arms import Arm, suite

from rlm_loop import LeanAgent, ScriptedModel, Task
from rlm_loop.study import Results, Study, StudyError, load_study


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("filter")
    arms = {"one": Arm("one", 1, wrong=("a-1",)), "two": Arm("two", 2)}
    Study("mine", arms, [suite("a", 3), suite("b", 2)], seeds=[0, 1]).run(folder, False)
    return load_study(folder)


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ({}, 20),
        ({"arm": "one"}, 10),
        ({"suite": "a"}, 12),
        ({"suite": "a", "arm": "one"}, 6),
        ({"suite": ["a", "b"], "seed": {1}}, 10),
        ({"resolved": False}, 2),
        ({"task": ("a-1",), "resolved": True}, 2),
    ],
    ids=str,
)
def test_filter_keeps_the_rows_that_have_it(results: Results, wanted: Any, count: int) -> None:
    found = results.filter(**wanted)
    assert type(found) is Results
    assert len(found) == count
    assert (found.name, found.folder, found.recorded) == (results.name, results.folder, results.recorded)
    for name, value in wanted.items():
        assert all(row[name] in (value if isinstance(value, (list, set, tuple)) else [value]) for row in found.rows)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"arms": "one"}, "no column 'arms'; did you mean 'arm'"),
        ({"arm": "three"}, "no episode has arm='three'; there are 'one', 'two'"),
        ({"suite": ["a", "c"]}, "no episode has suite='c'; there are 'a', 'b'"),
    ],
    ids=str,
)
def test_what_is_not_there_is_named(results: Results, wanted: Any, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        results.filter(**wanted)


def test_a_factor_is_a_column(tmp_path: Path) -> None:
    arms = {"lean": LeanAgent(model=ScriptedModel(["4"] * 4))}
    study = Study("s", arms, [Task("a", "2 + 2?", 4)], factors={"max_steps": [5, 10]})
    found = study.run(tmp_path, False)
    assert found.filter(max_steps=10).arms == ["lean[max_steps=10]"]


def test_plot_draws_and_saves(results: Results, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert results.plot(tmp_path / "plot.png").axes
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in tmp_path.iterdir()] == ["plot.png"]
