"""Instances of SWE-bench's schema: reading in every form, choosing, and clear errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_instances import BUGGY, fake_row, row, write_rows

from rlm_loop.tasks import Attempt, SuiteFileError, get_suite
from rlm_loop.tasks.swebench import CloneError, read_instance, read_instances, select
from tests.workspace.files_on_disk import git

MANY = [fake_row(n, repo) for repo in ("django/django", "psf/requests") for n in range(1, 6)]


def test_without_repositories_the_tasks_can_be_listed(tmp_path: Path) -> None:
    suite = get_suite(f"swebench:{write_rows(tmp_path / 'set.jsonl', *MANY)}", sample=3, seed=1)
    assert (suite.name, len(suite)) == ("swebench:set.jsonl", 3)
    with pytest.raises(CloneError, match=r"psf/requests|django/django.*repos=FOLDER"):
        suite.tasks[0].workspace()  # type: ignore[misc]


names = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=12)


@given(st.lists(names, max_size=4), st.lists(names, max_size=4), st.booleans(), names)
def test_an_instance_survives_its_row(fails: list[str], passes: list[str], as_text: bool, text: str) -> None:
    given = fake_row(1, problem_statement=f"x{text}", patch=text, image="i:latest", version=None)
    given["FAIL_TO_PASS"] = json.dumps(fails) if as_text else fails
    given["PASS_TO_PASS"] = json.dumps(passes) if as_text else passes
    one = read_instance(given, "here")
    assert (one.fail_to_pass, one.pass_to_pass, one.row["image"]) == (tuple(fails), tuple(passes), "i:latest")
    assert read_instance(json.loads(json.dumps(one.row)), "there") == one


def test_choosing_and_a_draw_that_depends_on_seed_and_ids_alone() -> None:
    there = [read_instance(r, "here") for r in MANY]
    assert list(select(there, ids=["psf__requests-2", "django__django-5"])) == [there[4], there[6]]
    assert list(select(there, only="psf/requests")) == there[5:]
    assert list(select(there, sample=99)) == there
    first = select(there, sample=4, seed=3)
    assert list(first) == [i for i in there if i in first]
    assert sorted(select(reversed(there), sample=4, seed=3), key=there.index) == list(first)
    assert any(select(there, sample=4, seed=s) != first for s in range(5))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"FAIL_TO_PASS": "[not json"}, r"a\.jsonl:2: field 'FAIL_TO_PASS' must be a list"),
        ({"PASS_TO_PASS": '{"a": 1}'}, r"field 'PASS_TO_PASS' must be a list of names of tests"),
        ({"base_commit": None}, r"field 'base_commit' must be a commit's hash, not None"),
        ({"base_commit": "main; rm"}, r"field 'base_commit' must be a commit's hash, not 'main; rm'"),
        ({"instance_id": "a/b"}, r"field 'instance_id' must be a plain name"),
        ({"instance_id": "psf__requests-1"}, r"a\.jsonl:2: field 'instance_id': .* used before, in .*a\.jsonl:1"),
    ],
)
def test_a_bad_row_is_named_by_line_and_field(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", fake_row(1, "psf/requests"), {**fake_row(1), **change})
    with pytest.raises(SuiteFileError, match=says) as caught:
        list(read_instances(str(path)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "options", "error", "says"),
    [
        ("light", {}, SuiteFileError, "no set 'light' of SWE-bench instances: known are lite"),
        ("gone.jsonl", {}, SuiteFileError, "there is no set 'gone.jsonl'"),
        (
            "a.jsonl",
            {"ids": ["django__django-55"]},
            SuiteFileError,
            "django__django-55'; did you mean 'django__django-5'",
        ),
        ("a.jsonl", {"only": "djangoo"}, SuiteFileError, "no instance of 'djangoo'; there are those of django/django"),
        ("a.jsonl", {"sample": 0}, SuiteFileError, "the choice leaves none"),
        ("a.jsonl", {"split": "dev"}, ValueError, "split is for sets"),
        ("a.jsonl", {"repos": "/no/such/folder"}, CloneError, "no clone of django/django in /no/such/folder"),
    ],
)
def test_a_bad_choice(
    name: str, options: dict[str, Any], error: Any, says: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(Path("a.jsonl"), *MANY)
    with pytest.raises(error, match=says):
        get_suite(f"swebench:{name}", **options)


def test_a_task_is_the_repository_at_its_base(repos: Path, calc: Path, one: str) -> None:
    (task,) = get_suite(one, repos=repos)
    assert (task.id, task.question) == ("local__calc-1", "add(1, 1) is 0.")
    with task.workspace() as space:
        assert (space.root / "calc.py").read_text() == BUGGY
        space.apply(task.expected)
        patch = space.diff()
    assert "+    return a + b" in patch
    assert git(calc, "status", "--porcelain") == ""
    (other,) = get_suite(one, repos=repos, hints=True)
    assert other.question == "add(1, 1) is 0.\n\nDiscussion:\nIs it the sign?"


def test_without_an_environment_nothing_is_judged_but_an_empty_patch(repos: Path, one: str) -> None:
    (task,) = get_suite(one, repos=repos)
    score = task.score(Attempt(artifact="diff --git a/x b/x\n"))
    assert (score.resolved, score.reason) == (None, "not evaluated; run `rlm-loop swebench evaluate`")
    for nothing in (None, "", " \n"):
        assert task.score(Attempt(artifact=nothing)).resolved is False


@pytest.mark.slow
def test_the_reference_resolves_and_other_patches_do_not(repos: Path, one: str) -> None:
    (task,) = get_suite(one, repos=repos, python=sys.executable)
    assert task.score(Attempt(artifact=task.expected)).resolved is True
    score = task.score(Attempt(artifact=task.expected.replace("a + b", "a * b")))
    assert (score.resolved, score.evidence["tests"]["tests/test_calc.py::test_two"]) == (False, "failed")


@pytest.mark.parametrize("tests", [[], ["test_a (app.tests.Case)"]])
def test_what_cannot_be_judged_here_says_so(tests: Any, repos: Path, calc: Path, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", row(calc, FAIL_TO_PASS=tests))
    (task,) = get_suite(f"swebench:{path}", repos=repos, python="python3")
    score = task.score(Attempt(artifact="diff"))
    assert (score.resolved, "only pytest's tests can be run" in score.reason) == (None, True)


@pytest.mark.parametrize("how", ["local__calc", "--mirror local__calc.git", "--mirror calc.git"])
def test_clones_are_found_by_name(how: str, calc: Path, one: str, tmp_path: Path) -> None:
    *bare, layout = how.split()
    git(tmp_path, "clone", "-q", *bare, str(calc), layout)
    assert len(get_suite(one, repos=tmp_path)) == 1


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (
            "git clone -q --depth=1 file://{calc} local__calc",
            "local__calc-1: field 'base_commit': .*run `git fetch origin",
        ),
        ("true", "no clone of local/calc in .*git clone --mirror https://github.com/local/calc"),
        ("mkdir local__calc", "no clone of local/calc in"),
    ],
)
def test_without_a_clone_that_has_the_commit_it_says_how_to_get_it(
    command: str, says: str, calc: Path, one: str, tmp_path: Path
) -> None:
    subprocess.run(command.format(calc=calc), shell=True, cwd=tmp_path, check=True)
    with pytest.raises(CloneError, match=says):
        get_suite(one, repos=tmp_path)


def test_a_clone_is_made_only_when_asked_for(calc: Path, one: str, tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "made"
    (task,) = get_suite(one, repos=folder, clone=f"file://{calc}")
    assert [p.name for p in folder.iterdir()] == ["local__calc.git"]
    assert "cloning" in capsys.readouterr().err
    with task.workspace() as space:  # type: ignore[misc]
        assert (space.root / "calc.py").exists()
    with pytest.raises(CloneError, match=r"no clone of local/calc in .*none could be made"):
        get_suite(one, repos=tmp_path / "none", clone=f"file://{tmp_path}/nowhere")
    assert list((tmp_path / "none").iterdir()) == []
