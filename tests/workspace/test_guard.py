"""Which files of a patch do not count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_patches import FILES, patch

from rlm_loop.workspace import Workspace
from rlm_loop.workspace.evaluation.guard import Guard, search_folders, steers_differently
from rlm_loop.workspace.evaluation.judged import fresh_modules, hidden, import_folders
from rlm_loop.workspace.git import Git
from rlm_loop.workspace.trees import applied, differences, grafted, lay

GUARD = Guard.of(
    ["tests/unit/test_a.py::test_x[a/b::c]", "pkg/tests/test_b.py::T::test_y", "checks.py::test_z"],
    ["data/expected.json"],
    ["golden", "docs/*.txt"],
)


@pytest.mark.parametrize(
    "name",
    [
        "tests/unit/test_a.py",
        "tests/helpers.py",
        "tests/unit/data/x.bin",
        "tests",  # a link in the folder's place
        "pkg/tests/__init__.py",
        "checks.py",
        "data/expected.json",
        "golden/deep/x",
        "docs/a.txt",
        "conftest.py",
        "deep/down/conftest.py",
        "Conftest.py",
        "conftest/__init__.py",
        "src/sitecustomize.py",
        "sitecustomize/__init__.py",
        "usercustomize.cpython-311-x86_64-linux-gnu.so",
        "pytest.ini",
        "other/.pytest.ini",
        "pytest.toml",
        "evil.pth",
        "pkg.egg-info/entry_points.txt",
        "x-1.dist-info/entry_points.txt",
        "pkg/__pycache__/mod.cpython-311.pyc",
        "pkg/mod.pyc",
        "pkg/test_new.py",
        "new_test.py",
    ],
)
def test_protected(name: str) -> None:
    assert GUARD.protects(name)


@pytest.mark.parametrize(
    "name",
    [
        "pkg/__init__.py",
        "pkg/testing.py",
        "pkg/test/client.py",
        "other/tests_of_time.py",
        "data/other.json",
        "docs/a.md",
        "setup.cfg",
        "pyproject.toml",
        "testsuite/x.py",
        "goldener/x",
        "contest.py",
    ],
)
def test_free(name: str) -> None:
    assert not GUARD.protects(name)


@given(st.lists(st.text(st.characters(exclude_characters="/\0"), min_size=1), min_size=1, max_size=5))
def test_whatever_lies_below_the_tests_is_protected(parts: list[str]) -> None:
    assert GUARD.protects("/".join(["tests", *parts]))


TOML = b'[project]\nversion = "1"\n[tool.pytest.ini_options]\naddopts = "-ra"\n'


@pytest.mark.parametrize(
    ("name", "reference", "patched", "different"),
    [
        ("pyproject.toml", TOML, TOML.replace(b'"1"', b'"2"'), False),
        ("pyproject.toml", TOML, TOML.replace(b"-ra", b"-k nothing"), True),
        ("a/pyproject.toml", None, b"[tool.pytest.ini_options]\n", True),
        ("pyproject.toml", None, b"[tool.other]\n", False),
        ("pyproject.toml", TOML, None, True),
        ("pyproject.toml", TOML, TOML + b"[tool.pytest.ini_options]\n", True),  # no TOML at all
        ("pyproject.toml", TOML, b"\xff" + TOML, True),
        ("setup.cfg", b"[flake8]\na=1\n", b"[flake8]\na=2\n", False),
        ("setup.cfg", b"[flake8]\na=1\n", b"[flake8]\na=1\n[tool:pytest]\naddopts=-x\n", True),
        ("tox.ini", None, b"[pytest]\n", True),
        ("tox.ini", b"[tox]\nenvlist=a\n", b"[tox]\nenvlist=b\n", False),
        ("tox.ini", b"[tox]\n", b"no section\n", True),
        ("other.ini", None, b"[pytest]\n", False),
        ("setup.cfg", b"[a]\n", b"[a]\n[tool:pytest] # ]\naddopts = -k two\n", True),
        ("tox.ini", b"[a]\n", b"[pytest] ; ]\naddopts = -k two\n", True),
        ("tox.ini", b"[a]\n", b"[a]\nx=1\x0c[pytest]\naddopts = -k two\n", True),  # a form feed ends a line
        ("pyproject.toml", b"", b"tool = 1\n", False),
    ],
)
def test_settings_shared_with_others(
    name: str, reference: bytes | None, patched: bytes | None, different: bool
) -> None:
    assert steers_differently(name, reference, patched) is different


def test_fresh_modules() -> None:
    there = ["pkg/__init__.py", "src/other/__init__.py", "one.py", "docs/a.md", "space/old.py", "checks/test_a.py"]
    added = {
        "pkg/new.py": [],
        "src/other/deep/__init__.py": [],
        "hypothesis.py": ["hypothesis"],
        "src/mock/__init__.py": ["mock", "src.mock"],
        "numpy.cpython-311-x86_64-linux-gnu.so": ["numpy"],
        "one/__init__.py": ["one"],
        "docs/b.md": [],
        "space/mod.py": ["space.mod"],
        "google/protobuf/__init__.py": ["google.protobuf"],
        "checks/statistics.py": ["statistics", "checks.statistics"],
        "not-a-name.py": [],
        "json": ["json"],  # a link to a package
    }
    wanted: dict[str, list[str]] = {}
    for name, modules in added.items():
        for module in modules:
            wanted.setdefault(module, []).append(name)
    assert fresh_modules(added, there, ["", "src", "checks"]) == wanted


def test_modules_that_hide_what_judges() -> None:
    modules = ["golden", "golden.check", "helpers", "tests", "other", "pkg"]
    protected = ["golden/check.py", "tests/helpers.py", "src/pkg/tests/test_a.py"]
    assert hidden(dict.fromkeys(modules), protected, ["", "src"]) == ["golden", "golden.check", "tests", "pkg"]
    assert hidden(dict.fromkeys(modules), protected, ["tests"]) == ["helpers"]


def test_folders_that_are_searched() -> None:
    there = ["a/__init__.py", "a/b/__init__.py", "a/b/test_x.py", "c/d/test_y.py", "test_z.py"]
    assert import_folders([name for name in there if "test_" in name], there) == ["", "c/d"]
    assert search_folders("pyproject.toml", b"[tool.pytest.ini_options]\npythonpath = ['lib', 'x y']\n") == [
        "lib",
        "x y",
    ]
    assert search_folders("a/pyproject.toml", b"[tool.pytest]\npythonpath = 'lib'\n") == ["a/lib"]
    assert search_folders("setup.cfg", b"[tool:pytest]\npythonpath = lib 'x y'\n") == ["lib", "x y"]
    assert search_folders("tox.ini", b"broken") == search_folders("other.ini", b"[pytest]\npythonpath = x\n") == []


def test_what_a_protected_link_leads_to() -> None:
    links = {"tests/data.txt": "../shared/data.txt", "tests/twice": "data.txt", "docs/x": "../pkg/__init__.py"}
    guard = Guard.of(["tests/test_a.py::test_x"], [], [], links)
    assert guard.protects("shared/data.txt")
    assert not guard.protects("pkg/__init__.py")


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
