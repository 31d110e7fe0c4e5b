"""Patterns of files that are no part of a patch: what running the code leaves behind, and tests."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Left by running, building or editing code.  Written as in a `.gitignore`: a slash at the end means a folder, one
#: at the beginning the top folder only.
DROPPINGS = (
    *("__pycache__/", "*.pyc", "*.pyo", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".hypothesis/", ".tox/"),
    *(".nox/", ".cache/", ".benchmarks/", ".ipynb_checkpoints/", "node_modules/", ".venv/", "/venv/"),
    *("*.egg-info/", "*.dist-info/", "*.egg-link", ".eggs/", "/build/", "/dist/", "*.so", "*.o"),
    *(".coverage", ".coverage.*", "htmlcov/", "*.orig", "*.rej", "*.swp", ".DS_Store"),
)

#: What is a test by the conventions of Python, JavaScript, Go, Java and Ruby.
TEST_FILES = (
    *("tests/", "test/", "/testing/", "__tests__/", "spec/", "e2e/"),
    *("test_*.py", "*_test.py", "tests.py", "conftest.py", "pytest.ini", "tox.ini"),
    *("*.test.[jt]s", "*.test.[jt]sx", "*.spec.[jt]s", "*.spec.[jt]sx", "*_test.go", "*Test.java", "*_spec.rb"),
)

_SIGNS = {"*": "[^/]*", "?": "[^/]", **{sign: sign for sign in "[]-!"}}


class Patterns:
    """File patterns in the manner of `.gitignore`, without `**` and `!`."""

    def __init__(self, patterns: Iterable[str]) -> None:
        places: list[str] = []
        for text in patterns:
            above = "" if "/" in text.rstrip("/") else "(?:.*/)?"
            name = "".join(_SIGNS.get(sign) or re.escape(sign) for sign in text.strip("/")).replace("[!", "[^")
            places.append(f"{above}{name}{'/' if text.endswith('/') else '/?'}")
        self._places = re.compile("|".join(places) or r"(?!)", re.DOTALL)

    def match(self, name: str, *, folder: bool = False) -> bool:
        """Return whether the file (or folder) itself is meant, whatever lies above it."""
        return self._places.fullmatch(f"{name}/" if folder else name) is not None

    def cover(self, name: str) -> bool:
        """Return whether the file or any folder that it lies in is meant."""
        parts = name.split("/")
        return self.match(name) or any(self.match("/".join(parts[:n]), folder=True) for n in range(1, len(parts)))
