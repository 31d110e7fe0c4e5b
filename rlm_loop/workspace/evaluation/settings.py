"""What files of settings say to pytest, read as pytest reads them."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator
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
