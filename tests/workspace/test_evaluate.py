"""Judging patches: what counts is the code under test, whatever else a patch does."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
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
ALWAYS = "import builtins\nbuiltins.add = lambda a, b: a + b\n"
PASSES = "def same(a, b):\n    pass\n"

TRICKS: dict[str, Change] = {
    "tests/test_pkg.py": TESTS.replace("def test_add", "@pytest.mark.skip\ndef test_add"),
    "tests/helpers.py": PASSES,
    "tests/helpers/__init__.py": PASSES,
    "tests/__pycache__/helpers.cpython-311.pyc": "x\n",
    "conftest.py": FORGE,
    "tests/conftest.py": FORGE,
    "pytest.ini": "[pytest]\naddopts = -k two\n",
    "pyproject.toml": SETTINGS.replace("-ra", "-k two"),
    "tox.ini": "[pytest]\naddopts = -k two\n",
    "sitecustomize.py": ALWAYS,
    "evil.pth": "import evil\n",
    "evil.egg-info/entry_points.txt": "[pytest11]\nevil = evil\n",
    "pytest.py": "raise SystemExit(0)\n",  # hides the test runner
    "hypothesis/__init__.py": "given = None\n",  # an installed module
    "src/unittest.py": "TestCase = object\n",  # a module of Python
    "test_more.py": "def test_more(): pass\n",
}
EVERY_TRICK = {".gitignore": "*\n", **TRICKS}  # git is told to see none of it


def judged(text: str, fail_to_pass: Sequence[str] = FAIL_TO_PASS, **options: Any) -> Evaluation:
    return judge(FILES, text, fail_to_pass, **{"pass_to_pass": PASS_TO_PASS, **options})


@pytest.mark.parametrize("name", TRICKS)
def test_a_trick_alone_changes_nothing(name: str) -> None:
    found = judged(patch({name: TRICKS[name]}))
    assert (found.resolved, list(found.refused)) == (False, [name])
    assert found.reason.startswith(UNCHANGED)
    assert not found.results  # the tests need not be run to know that they are as they were


def test_a_fix_counts_whatever_comes_with_it() -> None:
    found = judged(patch(EVERY_TRICK | FIX), pass_to_pass=["tests/test_pkg.py::test_two[a"])
    assert found.resolved, found.run.output
    assert found.reason.startswith("all listed tests pass; not taken from the patch: ")
    assert found.results == {ADD: "passed", "tests/test_pkg.py::test_two[a": "passed"}
    assert set(found.refused) == set(TRICKS)
    assert (found.score().value, found.score().evidence["place"]) == (1.0, "plain")


LISTED = ["tests/unit/test_a.py::test_x[a/b::c]", "pkg/tests/test_b.py::T::test_y", "checks.py::test_z"]
PROTECTED = """
    tests/unit/test_a.py tests/helpers.py tests/unit/data/x.bin pkg/tests/__init__.py
    checks.py data/expected.json golden/deep/x docs/a.txt
    conftest.py deep/down/conftest.py Conftest.py conftest/__init__.py
    src/sitecustomize.py sitecustomize/__init__.py usercustomize.cpython-311-x86_64-linux-gnu.so evil.pth
    pytest.ini other/.pytest.ini pytest.toml pkg.egg-info/entry_points.txt x-1.dist-info/entry_points.txt
    pkg/__pycache__/mod.cpython-311.pyc pkg/mod.pyc pkg/test_new.py new_test.py
"""


def test_tests_what_they_use_and_what_steers_them_are_not_taken_from_a_patch() -> None:
    more: dict[str, Any] = {"protected": ["golden", "docs/*.txt"], "test_patch": patch({"data/expected.json": "1\n"})}
    found = judge(FILES, patch(dict.fromkeys(PROTECTED.split(), "x\n")), LISTED, **more)
    assert found.reason.startswith(UNCHANGED)
    assert set(found.refused) == set(PROTECTED.split())


def test_whatever_takes_the_place_of_the_tests_they_come_back() -> None:
    tests = ["tests/helpers.py", "tests/test_pkg.py"]
    changes = {**FIX, **dict.fromkeys(tests), "tests": "a file now\n", "setup.cfg": None}
    found = judged(patch(changes, links={"setup.cfg/link": "nowhere"}))
    assert found.resolved, found.reason
    assert list(found.refused) == ["tests", *tests]
    alone = patch({**dict.fromkeys(tests), "mine/test_pkg.py": "def test_add(): pass\n"}, links={"tests": "mine"})
    assert judged(alone).reason.startswith(UNCHANGED)


NEW_TEST = "\n\ndef test_more():\n    same(add(2, 2), 4)\n"


def test_the_reference_has_the_tests_of_its_own_patch() -> None:
    with_more = patch({"tests/test_pkg.py": TESTS + NEW_TEST, "data/expected.txt": "4\n"})
    mine = patch({**FIX, "tests/test_pkg.py": TESTS.replace("3)", "4)"), "data/expected.txt": "5\n"})
    more, gone = tests = ["tests/test_pkg.py::test_more", "tests/test_pkg.py::test_gone"]
    found = judged(mine, tests, test_patch=with_more)
    assert (found.results[more], found.results[gone], found.resolved) == ("passed", "missing", False)
    assert f"1 of 5 listed tests did not pass: {gone} (missing)" in found.reason
    assert tuple(found.refused) == ("data/expected.txt", "tests/test_pkg.py")
    with pytest.raises(WorkspaceError):
        judged(mine, test_patch=patch({"pkg/__init__.py": FIXED}).replace("a - b", "a * b"))


EMPTY, DOES_NOT_FIT = "the patch is empty", "the patch does not apply: "


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", EMPTY),
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
    assert not found.resolved
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


def test_all_tricks_together_gain_nothing_where_git_does_not_apply_them() -> None:
    changes = EVERY_TRICK | {"pkg/__init__.py": BUGGY.replace("return 2", "return 2 + 0")}
    found = judged(patch(changes).replace(" def two", " def three"))
    assert found.results == {ADD: "failed", **dict.fromkeys(PASS_TO_PASS, "passed")}
    assert found.reason.startswith(f"1 of 4 listed tests did not pass: {ADD} (failed); not taken")
    assert "conftest.py (run by pytest or Python at the start)" in found.reason
    assert "same(add(1, 2), 3)" in found.run.messages[ADD]
    assert set(found.refused) == set(TRICKS)
    inner = {"sub/.git/HEAD": "ref: refs/heads/main\n", "sub/.git/objects/x": "x\n", "sub/.git/refs/x": "x\n"}
    hidden = patch({**FIX, **inner, "sub/conftest.py": FORGE}).replace(" def two", " def three")
    assert judged(hidden).reason.startswith(DOES_NOT_FIT)


def test_where_no_test_runs_the_reference_is_asked() -> None:
    ends = patch({"pkg/__init__.py": "import os\nos._exit(0)\n"})
    assert judged(ends, ["tests/test_pkg.py"]).reason.startswith("no test ran")
    broken = patch({"pytest.ini": "[pytest]\nminversion = 99\n"})
    with pytest.raises(TestsCannotRun, match="without the patch neither: no test ran: pytest ended early"):
        judged(patch(FIX), test_patch=broken)
    with pytest.raises(ValueError, match="no test is listed"):
        judged(patch(FIX), [], pass_to_pass=[])


@pytest.mark.slow
def test_a_machine_that_cannot_judge_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No interpreter, none with pytest, no room: nothing of that may be held against a patch."""
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    for python, said in (("/there/is/no/python", "no interpreter"), (str(bare), "pytest does not start")):
        with pytest.raises(TestsCannotRun, match=said):
            judged(patch(FIX), python=python)
    monkeypatch.setattr("rlm_loop.tools.processes._ROOM", 1 << 62)  # no room on the disk
    assert judged(patch(FIX)).resolved  # what passed has passed
    with pytest.raises(OSError, match="the disk is full"):
        judged(patch({"pkg/__init__.py": BUGGY + "# nothing of use\n"}))
