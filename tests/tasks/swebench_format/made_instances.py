"""A small repository with a past, made in the test, and instances of SWE-bench's schema that start from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.workspace.files_on_disk import commit_all, git, lay_out

BUGGY = "def add(a, b):\n    return a - b\n"
FIXED = "def add(a, b):\n    return a + b\n"
OLD_TEST = "from calc import add\n\n\ndef test_zero():\n    assert add(3, 0) == 3\n"
NEW_TEST = OLD_TEST + "\n\ndef test_two():\n    assert add(1, 1) == 2\n"


def made_repository(folder: Path) -> Path:
    """Two commits: a bug, and its fix with a test."""
    for source, test in ((BUGGY, OLD_TEST), (FIXED, NEW_TEST)):
        texts = {b"calc.py": source, b"tests/test_calc.py": test, b"conftest.py": ""}
        lay_out(folder, {name: ("file", text.encode()) for name, text in texts.items()})
        commit_all(folder)
    return folder


def row(repo: Path, name: str = "local__calc-1", **more: Any) -> dict[str, Any]:
    """The fix as a row of the schema."""
    base = git(repo, "rev-parse", "HEAD~1")
    patch, test_patch = (git(repo, "diff", "--full-index", base, "--", of) + "\n" for of in ("calc.py", "tests"))
    return {
        "repo": "local/calc",
        "instance_id": name,
        "base_commit": base,
        "patch": patch,
        "test_patch": test_patch,
        "problem_statement": "add(1, 1) is 0.",
        "hints_text": "Is it the sign?",
        "created_at": "2020-09-13T12:26:40Z",
        "version": "1.0",
        "FAIL_TO_PASS": '["tests/test_calc.py::test_two"]',
        "PASS_TO_PASS": ["tests/test_calc.py::test_zero"],
        "environment_setup_commit": base,
        **more,
    }


def fake_row(number: int, repo: str = "django/django", **more: Any) -> dict[str, Any]:
    """A row whose repository is nowhere."""
    return {
        "repo": repo,
        "instance_id": f"{repo.replace('/', '__')}-{number}",
        "base_commit": f"{number:040x}",
        "patch": "",
        "test_patch": "",
        "problem_statement": f"Problem {number}",
        "FAIL_TO_PASS": '["test_a (app.tests.Case)"]',
        "PASS_TO_PASS": "[]",
        **more,
    }


def write_rows(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path
