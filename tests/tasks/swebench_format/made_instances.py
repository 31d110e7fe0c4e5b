"""A small repository with a past, made in the test, and instances of SWE-bench's schema that start from it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

ENVIRONMENT = {
    **os.environ,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@localhost",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@localhost",
}
BUGGY = "def add(a, b):\n    return a - b\n"
FIXED = "def add(a, b):\n    return a + b\n"
OLD_TEST = "from calc import add\n\n\ndef test_zero():\n    assert add(3, 0) == 3\n"
NEW_TEST = OLD_TEST + "\n\ndef test_two():\n    assert add(1, 1) == 2\n"


class Made:
    """A repository in a folder, written to with git alone."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.clock = 1_600_000_000

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, env=ENVIRONMENT, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def write(self, **files: str) -> None:
        """Files by name, `__` for a slash and `_py` for the ending: `tests__test_calc_py`."""
        for name, text in files.items():
            path = self.path / name.replace("__", "/").replace("_py", ".py").replace("_md", ".md")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def commit(self, message: str, **files: str) -> str:
        self.write(**files)
        self.clock += 86_400
        stamp = f"{self.clock} +0000"
        self.git("add", "-A")
        ENVIRONMENT.update(GIT_AUTHOR_DATE=stamp, GIT_COMMITTER_DATE=stamp)
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def diff(self, old: str, new: str, *paths: str) -> str:
        return self.git("diff", "--full-index", old, new, "--", *paths) + "\n"


def made_repository(folder: Path) -> Made:
    """Two commits: a bug, and its fix with a test."""
    repo = Made(folder)
    repo.commit("Start", calc_py=BUGGY, tests__test_calc_py=OLD_TEST, conftest_py="")
    repo.commit("Fix add, which subtracted", calc_py=FIXED, tests__test_calc_py=NEW_TEST)
    return repo


def row(repo: Made, name: str = "local__calc-1", **more: Any) -> dict[str, Any]:
    """The fix as a row of the schema."""
    base, fix = repo.git("rev-parse", "HEAD~1"), repo.git("rev-parse", "HEAD")
    return {
        "repo": "local/calc",
        "instance_id": name,
        "base_commit": base,
        "patch": repo.diff(base, fix, "calc.py"),
        "test_patch": repo.diff(base, fix, "tests"),
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
