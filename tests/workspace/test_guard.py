"""Which files of a patch do not count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_patches import FILES, patch

from rlm_loop.workspace import Workspace
from rlm_loop.workspace.evaluation.guard import Guard
from rlm_loop.workspace.git import Git
from rlm_loop.workspace.trees import applied, differences, grafted, lay

GUARD = Guard.of(
    ["tests/unit/test_a.py::test_x[a/b::c]", "pkg/tests/test_b.py::T::test_y", "checks.py::test_z"],
    ["data/expected.json"],
    ["golden", "docs/*.txt"],
    {},
)


PROTECTED = {
    "of the tests' folder": "tests/unit/test_a.py tests/helpers.py tests/unit/data/x.bin pkg/tests/__init__.py",
    "a link in the folder's place": "tests",
    "given": "checks.py data/expected.json golden/deep/x docs/a.txt",
    "run by pytest": "conftest.py deep/down/conftest.py Conftest.py conftest/__init__.py",
    "run by Python": (
        "src/sitecustomize.py sitecustomize/__init__.py usercustomize.cpython-311-x86_64-linux-gnu.so evil.pth"
    ),
    "settings": "pytest.ini other/.pytest.ini pytest.toml",
    "plugins": "pkg.egg-info/entry_points.txt x-1.dist-info/entry_points.txt",
    "byte code": "pkg/__pycache__/mod.cpython-311.pyc pkg/mod.pyc",
    "named like a test": "pkg/test_new.py new_test.py",
}
FREE = """
    pkg/__init__.py pkg/testing.py pkg/test/client.py other/tests_of_time.py testsuite/x.py contest.py
    data/other.json docs/a.md goldener/x setup.cfg pyproject.toml
"""


@pytest.mark.parametrize("name", " ".join(PROTECTED.values()).split())
def test_protected(name: str) -> None:
    assert GUARD.why(name)


@pytest.mark.parametrize("name", FREE.split())
def test_free(name: str) -> None:
    assert not GUARD.why(name)


@given(st.lists(st.text(st.characters(exclude_characters="/\0"), min_size=1), min_size=1, max_size=5))
def test_whatever_lies_below_the_tests_is_protected(parts: list[str]) -> None:
    assert GUARD.why("/".join(["tests", *parts]))


def test_what_a_protected_link_leads_to() -> None:
    links = {"tests/data.txt": "../shared/data.txt", "tests/twice": "data.txt", "docs/x": "../pkg/__init__.py"}
    guard = Guard.of(["tests/test_a.py::test_x"], [], [], links)
    assert [bool(guard.why(name)) for name in ("shared/data.txt", "pkg/__init__.py")] == [True, False]


def test_trees_are_laid_over_each_other() -> None:
    """Whatever takes the place of what: a file, a folder, a link."""
    changes = {"tests/helpers.py": None, "tests/test_pkg.py": None, "tests": "a file now\n", "setup.cfg": None}
    text = patch(changes, links={"setup.cfg/link": "/etc"})
    with Workspace(FILES) as space:
        git, start = Git(space.root.parent / "own", space.root), space.base
        after = applied(git, start, text)
        lay(git, start, after)
        assert space.snapshot() == after
        assert (space.root / "tests").read_text() == "a file now\n"
        was = {name: old for name, (old, _) in differences(git, start, after).items()}
        assert grafted(git, after, was) == start
        lay(git, after, start)
        assert space.snapshot() == start
