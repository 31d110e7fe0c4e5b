"""Find the lines that hold a text: with case, else without, else as a regular expression.

A pattern of a model's can take for ever on one line, and nothing can stop it in this process: it runs in another one,
which is killed when the time is over.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import NamedTuple

from rlm_loop.tools.code.paths import files, texts
from rlm_loop.tools.code.text import decode
from rlm_loop.tools.function import ToolError
from rlm_loop.tools.processes import child_environment

MAX_HITS = 20
SECONDS = 20.0
_MAX_TEXT = 200  # characters of a line, or of a query, that are shown
_MAX_PATTERN = 1000  # characters
_MOST_NAMED = 3
_SIGNS = frozenset("\\^$|?*+[{")  # dots and parentheses alone are code as it is: `os.path`, `close()`
_PLACE = re.compile(r"(::.*|:\d+(:\d+)?:?)\Z", re.DOTALL)  # what follows a file's name
_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from rlm_loop.tools.code.searching import child; child()"


class Hit(NamedTuple):
    """A line that holds the text, or matches the pattern, from `start` to `end`."""

    path: str
    number: int
    line: str
    start: int
    end: int

    @property
    def shown(self) -> str:
        """The line; of a long one, the part that holds the text."""
        text = self.line.strip()
        if len(text) <= _MAX_TEXT:
            return f"{self.path}:{self.number}: {text}"
        indent = len(self.line) - len(self.line.lstrip())
        first = 0 if self.end - indent <= _MAX_TEXT else max(0, self.start - indent - _MAX_TEXT // 4)
        dots = "..." if first + _MAX_TEXT < len(text) else ""
        return f"{self.path}:{self.number}: {'...' if first else ''}{text[first : first + _MAX_TEXT]}{dots}"


class Hits(NamedTuple):
    """The first hits, and the number of lines in all (at least, where not all files were searched)."""

    lines: list[Hit]
    total: int = 0
    complete: bool = True


def search(root: Path, query: str, *, seconds: float = SECONDS) -> tuple[str, list[Hit]]:
    """Return the text for a model (lines as `file:line: text`, at most `MAX_HITS`), and the hits in it."""
    if not query.strip():
        raise ToolError("invalid_arguments", "query is empty")
    end = time.monotonic() + seconds
    nothing = f"no line holds {query if len(query) <= _MAX_TEXT else query[:_MAX_TEXT] + '...'!r}"
    hits, tried = Hits([]), "plain text, one line"
    if "\n" not in query and "\0" not in query:  # no line holds these
        hits = _scan(root, re.escape(query), end, plain=True)
    head: list[str] = []
    if not hits.lines and hits.complete:
        if named := _named(root, query):
            return f"{nothing}; read_file shows {' or '.join(named)}", []
        if _is_pattern(query):
            hits, tried = _matches(root, query, end), "as plain text of one line or as a regular expression"
            head = [f"{nothing}; as a regular expression it matches"]
    if not hits.lines:
        return f"{nothing} ({tried if hits.complete else f'stopped after {seconds:g} s, not all was searched'})", []
    more = hits.total - len(hits.lines)
    tail = [f"... {more} more"] if more else []
    if not hits.complete:
        tail = [f"... more than {more} more (stopped after {seconds:g} s)"]
    return "\n".join([*head, *(hit.shown for hit in hits.lines), *tail]), hits.lines


def _scan(root: Path, pattern: str, end: float, *, plain: bool) -> Hits:
    """Read every file once; hits without case count until one with case is found."""
    patterns = [p for flags in (0, re.IGNORECASE) if (p := _compiled(pattern, flags)) is not None]
    lines: list[list[Hit]] = [[] for _ in patterns]
    totals, complete = [0] * len(patterns), True
    for name, data in texts(root, files(root)):
        if not (complete := time.monotonic() < end):
            break
        text = decode(data)[0]
        for n, wanted in enumerate(patterns):
            if any(totals[:n]) or (plain and wanted.search(text) is None):
                continue
            for number, line in enumerate(text.split("\n"), 1):
                if (match := wanted.search(line := line.rstrip("\r"))) is not None:
                    totals[n] += 1
                    if totals[n] <= MAX_HITS:
                        lines[n].append(Hit(name, number, line, *match.span()))
    first = 0 if totals[0] else -1
    return Hits(lines[first], totals[first], complete)


def _named(root: Path, query: str) -> list[str]:
    """Return the files that a text names, as in `pkg/a.py`, `a.py:12` or `tests/test_a.py::test_b`."""
    path = _PLACE.sub("", query.strip().strip("`'\""))
    if not path or len(path) > _MAX_TEXT or path.isspace():
        return []
    fitting = (name for name in files(root) if name == path or name.endswith(f"/{path}"))
    return list(itertools.islice(fitting, _MOST_NAMED))


def _compiled(query: str, flags: int = 0) -> re.Pattern[str] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of signs that will mean something else one day
            return re.compile(query, flags)
    except (re.error, RecursionError, OverflowError):
        return None


def _is_pattern(query: str) -> bool:
    """Return whether it says more as a regular expression than as plain text."""
    if len(query) > _MAX_PATTERN or _SIGNS.isdisjoint(query):
        return False
    compiled = _compiled(query)
    return compiled is not None and compiled.search("") is None  # one that matches nothing matches every line


def _matches(root: Path, query: str, end: float) -> Hits:
    seconds = max(0.1, end - time.monotonic())
    argv = [sys.executable, "-I", "-c", _START, str(Path(__file__).parents[3])]
    asked = json.dumps([str(root), query, seconds]).encode()
    try:
        done = subprocess.run(argv, input=asked, env=child_environment(), capture_output=True, timeout=seconds + 1)
        lines, total, complete = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return Hits([], complete=False)
    return Hits([Hit(*line) for line in lines], total, complete)


def child() -> None:
    """Search for the pattern that standard input asks for, in a process of its own."""
    root, query, seconds = json.load(sys.stdin)
    print(json.dumps(_scan(Path(root), query, time.monotonic() + seconds, plain=False)))
