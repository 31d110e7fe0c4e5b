"""Which files are no part of a patch: what running the code leaves behind, and tests unless they were asked for."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

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


class Patterns:
    """File patterns in the manner of `.gitignore`, without `**` and `!`."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self.texts = tuple(patterns)
        self._plain: set[tuple[str, bool]] = set()  # (name, only folders): most need no search
        self._globs: list[tuple[str, bool]] = []
        self._places: list[tuple[list[str], bool]] = []
        for text in self.texts:
            folder, body = text.endswith("/"), text.removesuffix("/")
            if "/" in body:
                self._places.append((body.removeprefix("/").split("/"), folder))
            elif set(body) & set("*?["):
                self._globs.append((body, folder))
            else:
                self._plain.add((body, folder))

    def match(self, name: str, *, folder: bool = False) -> bool:
        """Whether the file (or folder) itself is meant, whatever lies above it."""
        last = name.rpartition("/")[2]
        if (last, False) in self._plain or (folder and (last, True) in self._plain):
            return True
        if any(fnmatchcase(last, glob) for glob, only in self._globs if folder or not only):
            return True
        parts = name.split("/")
        return any(
            len(parts) == len(place) and all(map(fnmatchcase, parts, place))
            for place, only in self._places
            if folder or not only
        )

    def cover(self, name: str) -> bool:
        """Whether the file or any folder that it lies in is meant."""
        parts = name.split("/")
        return self.match(name) or any(self.match("/".join(parts[:n]), folder=True) for n in range(1, len(parts)))
