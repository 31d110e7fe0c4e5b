"""The study of bugs in checkouts: its grid, its arms, and what its results say."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_loop.cli.main import main
from rlm_loop.study import StudyError, load_study_file

HERE = Path(__file__).parents[2] / "experiments" / "bug_fixing"


def test_the_grid_is_forty_tasks_four_arms() -> None:
    episodes = load_study_file(HERE).episodes()
    assert len(episodes) == 160
    assert {c.arm for c in episodes} == {"code", "lean", "react-native", "react-text"}
    assert all(c.suite.endswith("/test") for c in episodes)
    packages = {c.task.facts["package"] for c in episodes if "package" in c.task.facts}
    assert len(packages) >= 12  # spread over the packages, not the first of them
    first = [c.task.id for c in episodes[:4]]
    assert len(set(first)) == 1  # every arm meets a task before the next begins


def test_the_arms_differ_in_how_they_speak() -> None:
    ((_, made),) = load_study_file(HERE).agents().items()
    settings = {name: agent.settings() for name, agent in made.items()}
    for name in ("budget", "max_tokens", "localise"):
        assert len({str(s[name]) for s in settings.values()}) == 1, name


def test_one_suite_and_another_statement() -> None:
    study = load_study_file(HERE, names="package_bugs", statement="bare", tasks=3)
    assert [suite.name for suite in study.suites] == ["package_bugs@bare/test"]
    assert len(study.episodes()) == 12
    assert all("A test of this repository fails" in c.task.question for c in study.episodes())
    with pytest.raises(StudyError, match="has no option statements"):
        load_study_file(HERE, statements="bare")


def test_the_file_can_stand_in_the_question() -> None:
    study = load_study_file(HERE, names="humaneval-repair", shown=1, tasks=2)
    assert study.name == "bug_fixing-test-shown"  # so that its rows never mix with the others
    task = study.episodes()[0].task
    assert task.workspace is not None
    with task.workspace() as space:
        assert task.question.endswith("solution.py:\n" + space.read_file("solution.py"))
    with pytest.raises(StudyError, match="has no file to show: with shown=1 take names=humaneval-repair"):
        load_study_file(HERE, shown=1)  # a package has more files than one


def test_states_are_scored_only_where_there_is_a_workspace(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    other = HERE.parent / "recursion_depth"
    assert main(["study", "anytime", str(other / "results"), str(other), "--out", str(tmp_path)]) == 2
    assert "has a workspace" in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []  # no figure that says that nothing was ever right


@pytest.mark.parametrize(
    ("study", "more", "says"),
    [
        ("lean_vs_react", (), "names the places"),
        ("recursion_depth", ("--by", "colour"), "size, family, suite, task"),
        ("recursion_depth", ("--split", "third"), "there is no split"),
    ],
)
def test_reasons_that_cannot_be_had_are_one_line(
    capsys: pytest.CaptureFixture[str], study: str, more: tuple[str, ...], says: str
) -> None:
    there = HERE.parent / study
    assert main(["study", "failures", str(there / "results"), str(there), *more]) == 2
    assert says in " ".join(capsys.readouterr().err.split())
