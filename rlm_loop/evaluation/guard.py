"""Which files of a patched checkout are taken from the reference instead: those that say what is tested, and how.

A patch is judged by the tests as they were written, so it may change neither them nor what steers pytest and the
start of the interpreter.  Files that do more than that (`pyproject.toml`) may change in all other parts.
"""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

#: Modules that pytest and Python import by themselves, in any form (source, package, library).
_STARTED = frozenset(["conftest", "sitecustomize", "usercustomize"])
_SETTINGS = frozenset(["pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"])
_SHARED = frozenset(["pyproject.toml", "tox.ini", "setup.cfg"])
_INSTALLED = (".egg-info", ".dist-info", ".egg-link", ".pth")  # can name plugins, and code to run at the start
_TEST = re.compile(r"(test_.*|.*_test)\.py")  # what pytest takes for tests, if not told otherwise
_TESTS = frozenset(["test", "tests"])


@dataclass(frozen=True)
class Guard:
    """`files` are protected by name, `folders` with all that is below, `patterns` as globs (or folders).

    Everywhere: modules and settings that steer pytest, what is run at the start of Python, byte code, and files that
    are named like tests.
    """

    files: frozenset[str]
    folders: frozenset[str]
    patterns: tuple[str, ...]

    @classmethod
    def of(cls, tests: Iterable[str], changed: Collection[str], patterns: Sequence[str] = ()) -> Guard:
        """For node ids, the files that the tests' own patch changes, and what else is given.

        Of a folder `tests` (or `test`) that holds one of the listed tests, everything is protected.
        """
        files = {*(PurePosixPath(test.partition("::")[0]).as_posix() for test in tests), *changed}
        folders: set[str] = set()
        for name in files:
            parts = name.split("/")[:-1]
            at = next((i for i, part in enumerate(parts) if part in _TESTS), None)
            if at is not None:
                folders.add("/".join(parts[: at + 1]))
        return cls(frozenset(files), frozenset(folders), tuple(p.rstrip("/") for p in patterns))

    def protects(self, name: str) -> bool:
        """Whether a file, changed, added or removed by a patch, is to be as in the reference."""
        parts = name.split("/")
        above = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        if name in self.files or not self.folders.isdisjoint(above):
            return True
        if any(fnmatchcase(part, pattern) for pattern in self.patterns for part in above):
            return True
        folded = [part.casefold() for part in parts]  # some file systems do not tell them apart
        last = folded[-1]
        return (
            any(part.partition(".")[0] in _STARTED or part == "__pycache__" for part in folded)
            or any(part.endswith(_INSTALLED) for part in folded)
            or last in _SETTINGS
            or last.endswith((".pyc", ".pyo"))
            or _TEST.fullmatch(last) is not None
        )


def steers_differently(name: str, reference: bytes | None, patched: bytes | None) -> bool:
    """Whether a settings file that pytest shares with others now says something else to pytest.

    `None` is a file that is not there.  One that cannot be read counts as different.
    """
    last = name.rpartition("/")[2].casefold()
    if last not in _SHARED:
        return False
    read = _of_toml if last.endswith(".toml") else _of_ini
    try:
        return _part(read, reference) != _part(read, patched)
    except (ValueError, configparser.Error):  # a broken TOML file is a ValueError
        return True


def _part(read: Callable[[str], Any], content: bytes | None) -> Any:
    return None if content is None else read(content.decode())


def _of_toml(text: str) -> Any:
    return tomllib.loads(text).get("tool", {}).get("pytest")


def _of_ini(text: str) -> Any:
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections() if name in ("pytest", "tool:pytest")} or None


def fresh_modules(added: Iterable[str], there: Iterable[str], folders: Sequence[str] = ("", "src/")) -> dict[str, str]:
    """Modules that a patch adds at the top of the search path, each with the file that makes it one.

    `there` are the files before; one that is added beside others of its package is none of them.
    """
    before = {_module(name, folders) for name in there}
    found = {_module(name, folders): name for name in added}
    return {module: name for module, name in found.items() if module and module not in before}


def _module(name: str, folders: Sequence[str]) -> str:
    """The top-level module that a file makes importable, or nothing."""
    for folder in sorted(folders, key=len, reverse=True):
        if name.startswith(folder):
            first, separator, rest = name[len(folder) :].partition("/")
            if separator and rest.partition(".")[0] == "__init__":
                return first
            if not separator and first.endswith((".py", ".so", ".pyd")):
                return first.partition(".")[0]
            if folder:
                return ""
    return ""
