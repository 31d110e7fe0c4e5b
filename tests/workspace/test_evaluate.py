"""Judging patches: what counts is the code under test, whatever else a patch does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from made_patches import BUGGY, FAIL_TO_PASS, FILES, FIXED, PASS_TO_PASS, SETTINGS, TESTS, Change, judge, patch

from rlm_loop.workspace import WorkspaceError
from rlm_loop.workspace.evaluation import Evaluation, TestsCannotRun

ADD = "tests/test_pkg.py::test_add"
UNCHANGED = "the patch changes nothing but tests and their settings; not taken from the patch: "
FIX: Mapping[str, Change] = {"pkg/__init__.py": FIXED}

FORGE = """
import pytest
@pytest.hookimpl(tryfirst=True, hookwrapper=True)
def pytest_runtest_makereport(item, call):
    result = yield
    result.get_result().outcome = "passed"
"""
SKIP_ALL = "def pytest_collection_modifyitems(items):\n    for item in items: item.add_marker('skip')\n"
ALWAYS = "import builtins\nbuiltins.add = lambda a, b: a + b\n"

TRICKS: dict[str, Mapping[str, Change]] = {
    "weakens a test": {"tests/test_pkg.py": TESTS.replace("3)", "add(1, 2))")},
    "deletes the tests": {"tests/test_pkg.py": None},
    "marks a test as skipped": {"tests/test_pkg.py": TESTS.replace("def test_add", "@pytest.mark.skip\ndef test_add")},
    "weakens a helper": {"tests/helpers.py": "def same(a, b):\n    pass\n"},
    "hides a helper behind a package": {"tests/helpers/__init__.py": "def same(a, b):\n    pass\n"},
    "hides a helper behind byte code": {"tests/__pycache__/helpers.cpython-311.pyc": "x\n"},
    "forges reports": {"conftest.py": FORGE},
    "forges reports from below": {"tests/conftest.py": FORGE},
    "skips everything": {"conftest.py": SKIP_ALL},
    "chooses tests by settings": {"pytest.ini": "[pytest]\naddopts = -k two\n"},
    "chooses tests by shared settings": {"pyproject.toml": SETTINGS.replace("-ra", "-k two")},
    "chooses tests by another file's settings": {"tox.ini": "[pytest]\naddopts = -k two\n"},
    "runs at the start of Python": {"sitecustomize.py": ALWAYS},
    "runs at the start of Python from a path file": {"evil.pth": "import evil\n"},
    "names a plugin": {"evil.egg-info/entry_points.txt": "[pytest11]\nevil = evil\n"},
    "hides the test runner": {"pytest.py": "raise SystemExit(0)\n"},
    "hides an installed module": {"hypothesis/__init__.py": "given = None\n"},
    "hides a module of Python": {"src/unittest.py": "TestCase = object\n"},
    "adds a test": {"test_more.py": "def test_more(): pass\n"},
}


def judged(text: str, fail_to_pass: Sequence[str] = FAIL_TO_PASS, **options: Any) -> Evaluation:
    return judge(FILES, text, fail_to_pass, **{"pass_to_pass": PASS_TO_PASS, **options})


@pytest.mark.parametrize("trick", TRICKS)
def test_a_trick_alone_changes_nothing(trick: str) -> None:
    found = judged(patch(TRICKS[trick]))
    assert not found.resolved
    assert found.reason.startswith(UNCHANGED)
    assert set(found.refused) == set(TRICKS[trick])
    assert not found.results  # the tests need not be run to know that they are as they were


def every_trick() -> dict[str, Change]:
    hidden: dict[str, Change] = {".gitignore": "*\n"}  # so that git is told to see none of it
    return hidden | {name: text for trick in TRICKS.values() for name, text in trick.items()}


@pytest.mark.slow
def test_all_tricks_together_gain_nothing() -> None:
    found = judged(patch(every_trick() | {"pkg/__init__.py": BUGGY + "\n\n# nothing of use\n"}))
    assert not found.resolved
    assert found.results == {ADD: "failed", **dict.fromkeys(PASS_TO_PASS, "passed")}
    assert found.reason.startswith(f"1 of 1 tests to be fixed did not pass: {ADD} (failed); not taken")
    assert "conftest.py (run by pytest or Python at the start)" in found.reason
    assert "same(add(1, 2), 3)" in found.run.messages[ADD]


def test_a_fix_counts_whatever_comes_with_it() -> None:
    found = judged(patch(every_trick() | FIX), pass_to_pass=["tests/test_pkg.py::test_two[a"])
    assert found.resolved, found.run.output
    assert found.reason == "all listed tests pass"
    assert found.results == {ADD: "passed", "tests/test_pkg.py::test_two[a": "passed"}
    assert {"conftest.py", "tests/test_pkg.py", "pytest.py"} < set(found.refused)
    score = found.score()
    assert (score.resolved, score.value, score.evidence["place"]) == (True, 1.0, "plain")


def test_a_folder_of_tests_that_becomes_a_link() -> None:
    changes = {"tests/helpers.py": None, "tests/test_pkg.py": None, "mine/test_pkg.py": "def test_add(): pass\n"}
    assert judged(patch(changes, links={"tests": "mine"})).reason.startswith(UNCHANGED)


CHEATS = """
import os
if os.environ.get("RLM_LOOP_TESTS"):
    import pytest
def two():
    return 2
def add(a, b):
    %s
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("does", "outcome"),
    [("pytest.skip('no')", "skipped"), ("pytest.xfail('no')", "skipped"), ("os._exit(0)", "error")],
)
def test_what_is_no_pass(does: str, outcome: str) -> None:
    found = judged(patch({"pkg/__init__.py": CHEATS % does}), pass_to_pass=[])
    assert (found.resolved, found.results) == (False, {ADD: outcome})


NEW_TEST = "\n\ndef test_more():\n    same(add(2, 2), 4)\n"


def test_the_reference_has_the_tests_of_its_own_patch() -> None:
    with_more = patch({"tests/test_pkg.py": TESTS + NEW_TEST, "data/expected.txt": "4\n"})
    mine = patch({**FIX, "tests/test_pkg.py": TESTS.replace("3)", "4)"), "data/expected.txt": "5\n"})
    more, gone = tests = ["tests/test_pkg.py::test_more", "tests/test_pkg.py::test_gone"]
    found = judged(mine, tests, test_patch=with_more)
    assert (found.results[more], found.results[gone], found.resolved) == ("passed", "missing", False)
    assert f"1 of 2 tests to be fixed did not pass: {gone} (missing)" in found.reason
    assert tuple(found.refused) == ("data/expected.txt", "tests/test_pkg.py")
    with pytest.raises(WorkspaceError):
        judged(mine, test_patch=patch({"pkg/__init__.py": FIXED}).replace("a - b", "a * b"))


EMPTY, DOES_NOT_FIT = "the patch is empty", "the patch does not apply: "


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", EMPTY),
        ("\n \n", EMPTY),
        ("no patch at all", DOES_NOT_FIT),
        (patch(FIX).replace("a - b", "a * b"), DOES_NOT_FIT),
        (patch(FIX)[:-20], DOES_NOT_FIT),
        (patch({}, links={".git/hooks": "/tmp"}), DOES_NOT_FIT),
        (patch({"../outside": "x\n"}), DOES_NOT_FIT),
        (patch({"a" * 300: "x\n"}), "the patched files cannot be written: "),
    ],
)
def test_patches_that_are_none(text: str, reason: str) -> None:
    found = judged(text)
    assert (found.resolved, found.applied) == (False, reason == EMPTY)
    assert found.reason.startswith(reason)
    assert "\n" not in found.reason


HELPED = {
    "pkg.py": "def add(a, b):\n    return a - b\n",
    "support/check.py": "def same(a, b):\n    assert a == b\n",
    "test_a.py": "from support.check import same\nfrom pkg import add\ndef test_add(): same(add(1, 2), 3)\n",
}


@pytest.mark.parametrize(("name", "judges"), [("support/check.py", True), ("support/check/__init__.py", False)])
def test_a_helper_that_judges_is_named_and_cannot_be_hidden(name: str, judges: bool) -> None:
    found = judge(HELPED, patch({name: "def same(a, b):\n    pass\n"}, HELPED), ["test_a.py::test_add"])
    assert (found.judging, tuple(found.refused)) == (((name,), ()) if judges else ((), (name,)))
    assert found.resolved is judges
    assert ("the patch changes what the tests import and what checks: support/check.py" in found.reason) is judges


@pytest.mark.parametrize("text", [patch(FIX).replace(" def two", " def three"), patch(FIX).replace("\n", "\r\n")])
def test_other_lines_around_and_other_ends_of_lines_are_taken_as_in_the_official_harness(text: str) -> None:
    assert text != patch(FIX)
    found = judged(text)
    assert found.resolved, found.reason


def test_a_patch_that_git_does_not_apply_leaves_nothing_behind() -> None:
    changes = every_trick() | {"pkg/__init__.py": BUGGY.replace("return 2", "return 2 + 0")}
    found = judged(patch(changes).replace(" def two", " def three"))
    assert found.results[ADD] == "failed"
    assert {"conftest.py", "sitecustomize.py", "pytest.py"} < set(found.refused)
    inner = {"sub/.git/HEAD": "ref: refs/heads/main\n", "sub/.git/objects/x": "x\n", "sub/.git/refs/x": "x\n"}
    hidden = patch({**FIX, **inner, "sub/conftest.py": FORGE}).replace(" def two", " def three")
    assert not judged(hidden).applied


def test_where_no_test_runs_the_reference_is_asked() -> None:
    ends = patch({"pkg/__init__.py": "import os\nos._exit(0)\n"})
    assert judged(ends, ["tests/test_pkg.py"]).reason.startswith("no test ran")
    broken = patch({"pytest.ini": "[pytest]\nminversion = 99\n"})
    with pytest.raises(TestsCannotRun, match="without the patch neither: pytest cannot use"):
        judged(patch(FIX), test_patch=broken)


def test_no_tests_listed() -> None:
    with pytest.raises(ValueError, match="no test is listed"):
        judged(patch(FIX), [], pass_to_pass=[])
