"""A small repository with a bug, and patches for it, also such as no workspace would make."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from lazy import BARE

from rlm_loop.workspace import Workspace
from rlm_loop.workspace.evaluation import Evaluation, evaluate

BUGGY = '''"""Sums."""


def add(a, b):
    return a - b


def two():
    return 2
'''
FIXED = BUGGY.replace("a - b", "a + b")
TESTS = """import pytest
from helpers import same
from pkg import add, two


def test_add():
    same(add(1, 2), 3)


@pytest.mark.parametrize("text", ["a b", "a c"])
def test_two(text):
    same(two(), 2)


@pytest.mark.xfail
def test_known():
    assert two() == 3
"""
SETTINGS = """[project]
name = "pkg"
version = "1"

[tool.pytest.ini_options]
addopts = "-ra"
"""
FILES = {
    ".gitignore": "*.log\n",
    "pkg/__init__.py": BUGGY,
    "pyproject.toml": SETTINGS,
    "setup.cfg": "[flake8]\nmax-line-length = 100\n",
    "tests/helpers.py": "def same(a, b):\n    assert a == b\n",
    "tests/test_pkg.py": TESTS,
}
FAIL_TO_PASS = ("tests/test_pkg.py::test_add",)
PASS_TO_PASS = ("tests/test_pkg.py::test_two[a b]", "tests/test_pkg.py::test_two[a c]", "tests/test_pkg.py::test_known")

Change = str | None  # a file's new text; None removes it


def patch(
    changes: Mapping[str, Change], files: Mapping[str, str] = FILES, *, links: Mapping[str, str] | None = None
) -> str:
    """A patch in git's form of text files; `links` are symbolic links to add."""
    parts = [_part(name, files.get(name), new, "100644") for name, new in changes.items()]
    parts += [_part(name, None, target, "120000") for name, target in (links or {}).items()]
    return "".join(parts)


def _part(name: str, old: str | None, new: str | None, mode: str) -> str:
    head = f"diff --git a/{name} b/{name}\n"
    head += f"new file mode {mode}\n" if old is None else f"deleted file mode {mode}\n" if new is None else ""
    lines = difflib.unified_diff(
        (old or "").splitlines(keepends=True),
        (new or "").splitlines(keepends=True),
        "/dev/null" if old is None else f"a/{name}",
        "/dev/null" if new is None else f"b/{name}",
    )
    return head + "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def judge(files: Mapping[str, str], text: str, tests: Sequence[str], **options: Any) -> Evaluation:
    """A patch judged by tests that are to be mended, without isolation unless it is asked for."""
    given: dict[str, Any] = {"pass_to_pass": [], "place": "plain", "env": BARE, **options}
    return evaluate(lambda: Workspace(dict(files)), text, fail_to_pass=tests, **given)
