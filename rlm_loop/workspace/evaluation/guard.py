"""Which files of a patched checkout are taken from the reference instead: those that say what is tested, and how.

A patch is judged by the tests as they were written, so it may change neither them nor what steers pytest and the
start of the interpreter.  Files that do more than that (`pyproject.toml`) may change in all other parts: what they say
to pytest is read as pytest reads it.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any, cast

import iniconfig

#: Files that pytest shares with other programs, and those that are its own.
SHARED = frozenset(["pyproject.toml", "tox.ini", "setup.cfg"])
_ENDS = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")
OWN = frozenset(["pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"])


def settings_among(names: Iterable[str]) -> list[str]:
    """Which of these files pytest may read its settings from."""
    return [name for name in names if _last(name) in SHARED | OWN]


def steers_differently(name: str, reference: bytes | None, patched: bytes | None) -> bool:
    """Whether a settings file that pytest shares with others now says something else to pytest.

    `None` is a file that is not there.  One that cannot be read counts as different.
    """
    if _last(name) not in SHARED:
        return False
    try:
        return _said(name, reference) != _said(name, patched)
    except (ValueError, RecursionError, iniconfig.ParseError):  # a broken TOML file is a ValueError
        return True


def search_folders(name: str, content: bytes | None) -> list[str]:
    """The folders that these settings add to the search path, from the repository's top; none where unreadable."""
    if _last(name) not in SHARED | OWN:
        return []
    try:
        said = _said(name, content)
        given = [part["pythonpath"] for part in _tables(said) if "pythonpath" in part]
        words = [str(word) for one in given for word in (shlex.split(one) if isinstance(one, str) else one)]
    except (ValueError, TypeError, RecursionError, iniconfig.ParseError):
        return []
    above = name.rpartition("/")[0]
    return [f"{above}/{word}" if above else word for word in dict.fromkeys(words)]


def _tables(said: Any) -> Iterator[dict[str, Any]]:
    """Each table that is somewhere in these settings."""
    if isinstance(said, dict):
        yield cast("dict[str, Any]", said)
    inner: Any = said.values() if isinstance(said, dict) else said if isinstance(said, list) else ()
    for one in inner:
        yield from _tables(one)


def _said(name: str, content: bytes | None) -> Any:
    read: Callable[[str], Any] = _of_toml if _last(name).endswith(".toml") else _of_ini
    return read("" if content is None else content.decode())


def _last(name: str) -> str:
    return name.rpartition("/")[2].casefold()


def _of_toml(text: str) -> Any:
    read = tomllib.loads(text)
    return [table["pytest"] for table in (read, read.get("tool")) if isinstance(table, dict) and "pytest" in table]


def _of_ini(text: str) -> Any:
    """pytest's sections, by its own parser: to others a line such as `[pytest] # ]` is another section.

    Old versions of it end a line where a file's line ends, newer ones also at characters such as a form feed.
    """
    return [_sections(text), _sections(_ENDS.sub(" ", text))]


def _sections(text: str) -> dict[str, dict[str, str]]:
    found = {section.name.strip(): dict(section.items()) for section in iniconfig.IniConfig("settings", data=text)}
    return {name: said for name, said in found.items() if name in ("pytest", "tool:pytest")}


#: Modules that pytest and Python import by themselves, in any form (source, package, library).
_STARTED = frozenset(["conftest", "sitecustomize", "usercustomize"])
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
    def of(
        cls,
        tests: Iterable[str],
        changed: Collection[str],
        patterns: Sequence[str] = (),
        links: Mapping[str, str] | None = None,
    ) -> Guard:
        """For node ids, the files that the tests' own patch changes, and what else is given.

        Of a folder `tests` (or `test`) that holds one of the listed tests, everything is protected.  `links` are the
        symbolic links of the reference: what one that is protected leads to is protected, too.
        """
        files = {*(PurePosixPath(test.partition("::")[0]).as_posix() for test in tests), *changed}
        folders: set[str] = set()
        for name in files:
            parts = name.split("/")[:-1]
            at = next((i for i, part in enumerate(parts) if part in _TESTS), None)
            if at is not None:
                folders.add("/".join(parts[: at + 1]))
        found = cls(frozenset(files), frozenset(folders), tuple(p.rstrip("/") for p in patterns))
        ends = {_end(name, links) for name in links if found.why(name)} if links else set[str]()
        return replace(found, files=found.files | ends) if ends else found

    def protects(self, name: str) -> bool:
        """Whether a file, changed, added or removed by a patch, is to be as in the reference."""
        return bool(self.why(name))

    def kept(self, names: Iterable[str]) -> list[str]:
        """Of a repository's files those that a run of its tests may not change, and those that it may not make."""
        there = [name for name in names if self.protects(name)]
        folders = {"", *(str(above) for name in self.files for above in PurePosixPath(name).parents)} - {"."}
        new = (f"{folder}/{name}".lstrip("/") for folder in sorted(folders) for name in ("conftest.py", "__init__.py"))
        return list(dict.fromkeys([*there, *new]))

    def why(self, name: str) -> str:
        """Why such a file is to be as in the reference; nothing where a patch may change it."""
        parts = name.split("/")
        above = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        if name in self.files or not self.folders.isdisjoint(above):
            return "the tests that judge, or what they use"
        if any(fnmatchcase(part, pattern) for pattern in self.patterns for part in above):
            return "protected by the task"
        folded = [part.casefold() for part in parts]  # some file systems do not tell them apart
        last = folded[-1]
        if any(part.partition(".")[0] in _STARTED for part in folded):
            return "run by pytest or Python at the start"
        if any(part.endswith(_INSTALLED) for part in folded):
            return "can name plugins"
        if last in OWN:
            return "settings of pytest"
        if "__pycache__" in folded or last.endswith((".pyc", ".pyo")):
            return "byte code"
        return "named like a test" if _TEST.fullmatch(last) else ""


def _end(name: str, links: Mapping[str, str]) -> str:
    """The file that a link leads to, through others, from the repository's top."""
    for _ in range(20):
        if name not in links:
            break
        name = normpath(f"{name.rpartition('/')[0]}/{links[name]}".lstrip("/"))
    return name
