"""Which files of a patch do not count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.evaluation.guard import Guard, fresh_modules, steers_differently

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
    ],
)
def test_settings_shared_with_others(
    name: str, reference: bytes | None, patched: bytes | None, different: bool
) -> None:
    assert steers_differently(name, reference, patched) is different


def test_fresh_modules() -> None:
    there = ["pkg/__init__.py", "src/other/__init__.py", "one.py", "docs/a.md"]
    added = {
        "pkg/new.py": None,
        "src/other/deep/__init__.py": None,
        "hypothesis.py": "hypothesis",
        "src/mock/__init__.py": "mock",
        "numpy.cpython-311-x86_64-linux-gnu.so": "numpy",
        "one/__init__.py": None,
        "docs/b.md": None,
        "space/mod.py": None,
    }
    assert fresh_modules(added, there) == {module: name for name, module in added.items() if module}
