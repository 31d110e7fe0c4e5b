"""Find the lines that hold a text: first with case, and where there are none, without; then as a regular expression."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import AnyStr

from rlm_loop.tools.code.paths import contents, files
from rlm_loop.tools.code.pattern import is_pattern, matches
from rlm_loop.tools.code.texts import decode
from rlm_loop.tools.function import ToolError

MAX_HITS = 20
SECONDS = 20.0
"""The most time that one search takes; what was found until then is shown."""
_MAX_TEXT = 200  # characters of a line shown by a search
_MOST_NAMED = 3
_PLACE = re.compile(r"(::.*|:\d+(:\d+)?:?)\Z", re.DOTALL)  # what stands behind a file's name


@dataclass(frozen=True)
class Hit:
    """A line that holds the text."""

    path: str
    number: int
    line: str
    matched: str = ""  # what a pattern matched of it


@dataclass(frozen=True)
class SearchResult:
    """The first hits, and how many lines there are in all (at least, where not every file was searched).

    Where there are none, `named` are files whose name the text is: models search for names too.
    """

    query: str
    hits: tuple[Hit, ...]
    total: int
    complete: bool = True
    seconds: float = SECONDS
    named: tuple[str, ...] = ()
    pattern: bool = False

    @property
    def text(self) -> str:
        """What a model is shown; `pattern` says that the query was taken as a regular expression."""
        if self.pattern and self.hits:
            return f"no line holds {_short(self.query)!r}; as a regular expression it matches\n{self._shown}"
        return self._shown

    @property
    def _shown(self) -> str:
        if not self.hits and self.named:
            return f"no line holds {_short(self.query)!r}; read_file shows {' or '.join(self.named)}"
        if not self.hits:
            tried = "as plain text of one line or as a regular expression" if self.pattern else "plain text, one line"
            why = tried if self.complete else f"stopped after {self.seconds:g} s, not all was searched"
            return f"no line holds {_short(self.query)!r} ({why})"
        shown = [f"{hit.path}:{hit.number}: {_snippet(hit.line, hit.matched or self.query)}" for hit in self.hits]
        more = self.total - len(shown)
        if not self.complete:
            shown.append(f"... more than {more} more (stopped after {self.seconds:g} s)")
        elif more > 0:
            shown.append(f"... {more} more")
        return "\n".join(shown)


def search(root: Path, query: str, *, seconds: float = SECONDS) -> str:
    """Lines that hold `query` as plain text (where there are none, ignoring case; then as a regular expression, which
    is said first), as `file:line: text`."""
    return find(root, query, seconds=seconds).text


def find(root: Path, query: str, *, seconds: float = SECONDS) -> SearchResult:
    """What `search` shows."""
    if not query.strip():
        raise ToolError("invalid_arguments", "query is empty")
    end = time.monotonic() + seconds
    if "\n" in query or "\0" in query:  # no line holds it
        return SearchResult(query, (), 0, named=_named(root, query))
    found = _from_files(root, query, end, seconds)
    if found.hits or not found.complete:
        return found
    named = _named(root, query)
    return replace(found, named=named) if named or not is_pattern(query) else _from_pattern(root, query, end, seconds)


def _from_pattern(root: Path, query: str, end: float, seconds: float) -> SearchResult:
    matched = matches(root, query, most=MAX_HITS, seconds=end - time.monotonic())
    numbers: dict[str, dict[int, str]] = {}
    for name, number, text in matched.lines:
        numbers.setdefault(name, {})[number] = text
    hits = [
        replace(hit, matched=numbers[name][hit.number])
        for name, data in _texts(root, numbers)
        for hit in _hits(data, name, list(numbers[name]))
    ]
    return SearchResult(query, tuple(hits), matched.total, matched.complete, seconds, pattern=True)


def _named(root: Path, query: str) -> tuple[str, ...]:
    """The files that a text names, as in `pkg/a.py`, `a.py:12` or `tests/test_a.py::test_b`."""
    path = _PLACE.sub("", query.strip().strip("`'\""))
    if not path or len(path) > _MAX_TEXT or path.isspace():
        return ()
    return tuple(islice((name for name in files(root) if name == path or name.endswith(f"/{path}")), _MOST_NAMED))


def _from_files(root: Path, query: str, end: float, seconds: float) -> SearchResult:
    """Every file read once, one at a time; hits in other cases count until a file holds the text as it is."""
    hits: dict[bool, list[Hit]] = {False: [], True: []}
    totals = {False: 0, True: 0}
    complete = True
    for name, data in _texts(root, files(root)):
        if time.monotonic() >= end:
            complete = False
            break
        for fold in (False, True):
            if fold and totals[False]:
                break
            numbers = list(_numbers(data, query, name, fold))
            totals[fold] += len(numbers)
            hits[fold] += _hits(data, name, numbers[: MAX_HITS - len(hits[fold])])
    exact = totals[False] > 0
    return SearchResult(query, tuple(hits[not exact]), totals[not exact], complete, seconds)


def _texts(root: Path, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """The files that are text."""
    return ((name, data) for name, data in contents(root, names) if b"\0" not in data)


def _numbers(data: bytes, query: str, name: str, fold: bool) -> Iterator[int]:
    """The numbers, from 1, of the lines that hold the query."""
    if query.isascii():
        wanted = query.encode()
        return _lines_with(data.lower(), wanted.lower(), b"\n") if fold else _lines_with(data, wanted, b"\n")
    text = decode(data, name)[0]
    return _lines_with(text.casefold(), query.casefold(), "\n") if fold else _lines_with(text, query, "\n")


def _lines_with(text: AnyStr, wanted: AnyStr, newline: AnyStr) -> Iterator[int]:
    number, counted, at = 1, 0, text.find(wanted)
    while at >= 0:
        number, counted = number + text.count(newline, counted, at), at
        yield number
        end = text.find(newline, at)
        at = -1 if end < 0 else text.find(wanted, end)


def _hits(data: bytes, name: str, numbers: list[int]) -> list[Hit]:
    if not numbers:
        return []
    lines = decode(data, name)[0].split("\n")
    return [Hit(name, number, lines[number - 1] if number <= len(lines) else "") for number in numbers]


def _snippet(line: str, query: str) -> str:
    """The line; of a long one, the part that holds the text."""
    line = line.strip()
    if len(line) <= _MAX_TEXT:
        return line
    at = line.casefold().find(query.strip().casefold())
    start = 0 if at + len(query) <= _MAX_TEXT else max(0, at - _MAX_TEXT // 4)
    part = line[start : start + _MAX_TEXT]
    return f"{'...' if start else ''}{part}{'...' if start + _MAX_TEXT < len(line) else ''}"


def _short(query: str) -> str:
    return query if len(query) <= _MAX_TEXT else query[:_MAX_TEXT] + "..."
