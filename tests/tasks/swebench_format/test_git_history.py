"""Past fixes of a repository as tasks: which commits, which tests, and nothing of the repository touched."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from made_instances import BUGGY, ENVIRONMENT, FIXED, NEW_TEST, OLD_TEST, Made

from rlm_loop.tasks.clones import Clone, CloneError
from rlm_loop.tasks.git_history import Commit, GitHistoryError, from_git_history, mine, statement_of
from rlm_loop.tasks.git_history.commits import is_test
from rlm_loop.tasks.swebench import instances_from, read_instances, write_instances

pytestmark = pytest.mark.slow

SUM = "def total(xs):\n    return sum(xs[1:])\n"
SUM_TEST = "from total import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
FLAKY = """
import pathlib
import random

from calc import add


def test_luck():
    assert add(1, 1) == 2 or random.random() < 0


def test_steady():
    assert add(2, 2) == 4
"""


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> tuple[Made, dict[str, str]]:
    """A repository with commits of every kind, and their ids by name."""
    repo = Made(tmp_path_factory.mktemp("past") / "calc")
    ids: dict[str, str] = {}
    ids["root"] = repo.commit("Fix nothing yet", calc_py=BUGGY, tests__test_calc_py=OLD_TEST, conftest_py="")
    body = "It subtracted.\n\nFixes #7\n\nSigned-off-by: A <a@localhost>\n"
    ids["fix"] = repo.commit(f"Fix add\n\n{body}", calc_py=FIXED, tests__test_calc_py=NEW_TEST, README_md="calc\n")
    ids["docs"] = repo.commit("Fix a word", README_md="Calc\n")
    ids["tests"] = repo.commit("Fix the tests", tests__test_more_py=OLD_TEST)
    ids["wording"] = repo.commit("Fix wording", calc_py=FIXED + "# sums\n", tests__test_more_py=OLD_TEST + "\n")
    ids["feature"] = repo.commit("Add total", total_py=SUM.replace("1:", ":"), tests__test_total_py=SUM_TEST)
    repo.write(total_py=SUM)
    ids["bug"] = repo.commit("Speed up total")
    repo.git("mv", "total.py", "totals.py")
    repo.git("mv", "tests/test_total.py", "tests/test_totals.py")
    renamed = {
        "totals_py": SUM.replace("1:", ":"),
        "tests__test_totals_py": SUM_TEST.replace("from total", "from totals"),
    }
    ids["renamed"] = repo.commit("Fix total, which forgot the first; rename it", **renamed)
    repo.git("checkout", "-q", "-b", "side")
    ids["side"] = repo.commit(
        "Fix a side", calc_py=FIXED + "# sums, again\n", tests__test_side_py="def test_s():\n    pass\n"
    )
    repo.git("checkout", "-q", "main")
    repo.commit("Other", README_md="Calc.\n")
    repo.git("merge", "-q", "--no-ff", "-m", "Merge: fix a side", "side")
    ids["merge"] = repo.git("rev-parse", "HEAD")
    return repo, ids


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def test_fixes_become_tasks(past: tuple[Made, dict[str, str]], cache: Path, tmp_path: Path) -> None:
    repo, ids = past
    (repo.path / "calc.py").write_text("not committed")
    before = repo.git("status", "--porcelain"), sorted(p.name for p in (repo.path / ".git").iterdir())
    lines: list[str] = []
    options: dict[str, Any] = {"cache": cache, "progress": lines.append, "place": "plain"}
    found = mine(repo.path, **options)
    assert (repo.git("status", "--porcelain"), sorted(p.name for p in (repo.path / ".git").iterdir())) == before
    repo.git("checkout", "-q", "calc.py")

    assert [i.more["fix_commit"] for i in found.instances] == [ids["renamed"], ids["fix"]]
    renamed, fix = found.instances
    assert fix.fail_to_pass == ("tests/test_calc.py::test_two",)
    assert fix.pass_to_pass == ("tests/test_calc.py::test_zero",)
    assert fix.problem_statement == "Fix add\n\nIt subtracted.\n\nFixes #7"
    assert (fix.repo, fix.base_commit) == ("local/calc", ids["root"])
    assert "README.md" in fix.patch
    assert "tests" not in fix.patch
    assert renamed.fail_to_pass == ("tests/test_totals.py::test_total",)
    assert "rename to" not in renamed.patch
    reasons = {name: found.skipped.get(sha) for name, sha in ids.items()}
    assert reasons == {
        "root": "it has no parent here",
        "fix": None,
        "docs": "it changes no module of tests",
        "tests": "it changes no Python source besides tests",
        "wording": "no test fails before it and passes after it",
        "feature": None,  # its message is no fix's
        "bug": None,
        "renamed": None,
        "side": "no test fails before it and passes after it",
        "merge": None,
    }
    assert any("1 fail to pass, 1 pass to pass" in line for line in lines)

    # the second time nothing is run: an interpreter that is not there would be noticed
    lines.clear()
    again = mine(repo.path, **options)
    assert again == found
    assert all(line.endswith("(kept)") for line in lines)
    for damaged in cache.rglob("*.json"):
        damaged.write_text("{")
    assert mine(repo.path, max=1, **options).instances == found.instances[:1]


def test_a_suite_of_the_past(past: tuple[Made, dict[str, str]], cache: Path, tmp_path: Path) -> None:
    repo, ids = past
    suite = from_git_history(
        repo.path, match="^Fix add", cache=cache, progress=False, place="plain", instruction="Mend this."
    )
    (task,) = suite
    assert (suite.name, task.id) == ("history:local/calc", f"local__calc-{ids['fix'][:12]}")
    assert task.question.startswith("Mend this.\n\nFix add")
    assert task.workspace is not None
    with task.workspace() as space:
        assert (space.root / "calc.py").read_text() == BUGGY
        assert "test_two" not in (space.root / "tests" / "test_calc.py").read_text()
    path = write_instances(suite, tmp_path / "own.jsonl")
    assert list(read_instances(str(path))) == list(instances_from(suite))


def test_a_test_that_does_not_always_do_the_same_tells_no_fix(tmp_path: Path) -> None:
    """The file counts the runs: the test fails in the first run without the change, and passes in the second."""
    count = tmp_path / "count"
    counting = FLAKY.replace("random.random() < 0", f"_second({str(count)!r})") + (
        "\n\ndef _second(name):\n    path = pathlib.Path(name)\n    path.touch()\n"
        "    path.write_text(path.read_text() + 'x')\n    return len(path.read_text()) > 1\n"
    )
    repo = Made(tmp_path / "calc")
    repo.commit("Start", calc_py=BUGGY, tests__test_calc_py=OLD_TEST, conftest_py="")
    repo.commit("Fix add", calc_py=FIXED, tests__test_luck_py=counting)
    (found,) = mine(repo.path, cache=None, progress=False, place="plain").instances
    assert found.fail_to_pass == ("tests/test_luck.py::test_steady",)


def test_tests_that_cannot_be_run(past: tuple[Made, dict[str, str]], tmp_path: Path) -> None:
    repo, _ = past
    options: dict[str, Any] = {"cache": tmp_path, "progress": False, "place": "plain"}
    with pytest.raises(GitHistoryError, match=r"none of \d+ commits .* its tests could not be run"):
        from_git_history(repo.path, python="/no/such/python", **options)
    assert list(tmp_path.rglob("*.json")) == []  # it says nothing about the commits
    with pytest.raises(GitHistoryError, match=r"of 5 commits could not be run with /no/such/python .*\(python=\)"):
        mine(repo.path, python="/no/such/python", match=None, rev=_many(repo, tmp_path / "many"), **options)


def _many(repo: Made, folder: Path) -> str:
    """A branch with six more commits of source and tests."""
    repo.git("worktree", "add", "-q", "-b", "many", str(folder), "main")
    work = Made.__new__(Made)
    work.path, work.clock = folder, 1_650_000_000
    for n in range(6):
        work.commit(f"Step {n}", calc_py=FIXED + f"# {n}\n", tests__test_calc_py=NEW_TEST + f"# {n}\n")
    return "many"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"match": "no such word"}, "has no commit that matches; widen since, paths or match"),
        ({"since": "2037-01-01"}, "has no commit that matches"),
        ({"paths": ["README.md"], "match": "word"}, r"none of 1 commits .*\(1 x it changes no module of tests\)"),
        ({"rev": "nowhere"}, "has no commit 'nowhere'"),
    ],
)
def test_a_history_without_tasks(past: tuple[Made, dict[str, str]], options: dict[str, Any], says: str) -> None:
    with pytest.raises(GitHistoryError, match=says) as caught:
        from_git_history(past[0].path, cache=None, progress=False, **options)
    assert "\n" not in str(caught.value)


def test_a_shallow_clone_and_no_repository(past: tuple[Made, dict[str, str]], tmp_path: Path) -> None:
    repo, _ = past
    shallow = tmp_path / "shallow"
    argv = ["git", "clone", "-q", "--depth=1", f"file://{repo.path}", str(shallow)]
    subprocess.run(argv, check=True, env=ENVIRONMENT)
    with pytest.raises(GitHistoryError, match="the clone is shallow: `git fetch --unshallow`"):
        from_git_history(shallow, cache=None, progress=False)
    (tmp_path / "plain").mkdir()
    for path, says in ((tmp_path / "plain", "is no git repository"), (tmp_path / "gone", "there is no folder")):
        with pytest.raises(CloneError, match=says):
            from_git_history(path)
    with pytest.raises(CloneError, match="is a folder inside a git repository"):
        from_git_history(repo.path / "tests")
    empty = tmp_path / "empty"
    Made(empty)
    with pytest.raises(GitHistoryError, match="has no commit 'HEAD'"):
        from_git_history(empty)


def test_merges_and_submodules(past: tuple[Made, dict[str, str]], tmp_path: Path) -> None:
    repo, ids = past
    options: dict[str, Any] = {"cache": None, "progress": False, "place": "plain"}
    assert ids["merge"] in mine(repo.path, merges=True, match="^Merge", **options).skipped
    assert mine(repo.path, match="^Merge", **options).skipped == {}
    other = Made(tmp_path / "with_submodule")
    other.commit("Start", calc_py=BUGGY, tests__test_calc_py=OLD_TEST)
    other.write(calc_py=FIXED, tests__test_calc_py=NEW_TEST)
    other.git("add", "-A")
    other.git("update-index", "--add", "--cacheinfo", f"160000,{ids['fix']},vendored")
    other.git("commit", "-q", "-m", "Fix add and vendored")
    assert list(mine(other.path, **options).skipped.values()) == ["it changes a submodule", "it has no parent here"][:1]


COMMIT = Commit("f" * 40, "e" * 40, "", "Fix add (#7)", "It subtracted.\n\nCo-authored-by: B <b@x>\nSee GH-12, a/b#3\n")


@pytest.mark.parametrize(
    ("how", "issues", "text"),
    [
        ("message", None, "Fix add (#7)\n\nIt subtracted.\n\nSee GH-12, a/b#3"),
        ("subject", None, "Fix add (#7)"),
        (lambda c: c.sha[:3], None, "fff"),
        ("message", {12: "Two and two is nil.", 3: "Not ours."}, "Two and two is nil."),
        ("subject", lambda n: f"Issue {n}", "Issue 7\n\nIssue 12"),
        ("subject", {1: "x"}, "Fix add (#7)"),
    ],
)
def test_statements(how: Any, issues: Any, text: str) -> None:
    assert statement_of(COMMIT, how, issues) == text
    with pytest.raises(ValueError, match="statement is"):
        statement_of(COMMIT, "body")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "test"),
    [
        ("tests/test_a.py", True),
        ("a/tests/data.json", True),
        ("a/test_b.py", True),
        ("a/b_test.py", True),
        ("conftest.py", True),
        ("a/tests.py", True),
        ("a/testing.py", False),
        ("contest/a.py", False),
        ("latest.py", False),
        ("src/attest/x.py", False),
    ],
)
def test_which_paths_are_tests(path: str, test: bool) -> None:
    assert is_test(path) is test


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/psf/requests.git", "psf/requests"),
        ("git@github.com:psf/requests", "psf/requests"),
        ("ssh://git@host:22/group/sub/project.git", "sub/project"),
        ("/somewhere/else", "local/calc"),
        ("", "local/calc"),
    ],
)
def test_the_name_of_a_repository(url: str, name: str, tmp_path: Path) -> None:
    repo = Made(tmp_path / "calc")
    if url:
        repo.git("remote", "add", "origin", url)
    assert Clone.at(repo.path).name == name


def test_the_export_command(past: tuple[Made, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rlm_loop.cli.main import main

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    out = tmp_path / "own.jsonl"
    assert (
        main(["swebench", "export", str(past[0].path), "--out", str(out), "--python", sys.executable, "--max", "1"])
        == 0
    )
    (line,) = out.read_text().splitlines()
    assert json.loads(line)["FAIL_TO_PASS"] == '["tests/test_totals.py::test_total"]'
