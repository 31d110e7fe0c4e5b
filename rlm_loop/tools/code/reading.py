"""Read numbered lines of a file, and list files by a glob pattern."""

from __future__ import annotations

import difflib
import fnmatch
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlm_loop.tools.code.paths import files, inside, read_bytes
from rlm_loop.tools.code.texts import decode, lines_of, numbered
from rlm_loop.tools.function import ToolError

MAX_LINES = 200
_COMPARED = 5_000  # names looked at for one that was meant; more would take seconds


class NoFile(ToolError):
    """There is no such file."""


@dataclass(frozen=True)
class FilePage:
    """Lines `first` to `last` of a file, and how many of those asked for come after them."""

    data: bytes
    lines: list[str]
    first: int
    last: int
    more: int

    @property
    def text(self) -> str:
        if not self.lines:
            return "(empty file)"
        rest = f"\n... {self.more} more lines" if self.more else ""
        return numbered(self.lines, self.first, self.last) + rest


def read(root: Path, path: str, start_line: int = 1, end_line: int = 0) -> str:
    """Lines `start_line` to `end_line` (0: the last), each with its number, at most `MAX_LINES` of them.

    A line of more than 500 characters is cut and says so.
    """
    return open_page(root, path, start_line, end_line).text


def open_page(root: Path, path: str, start_line: int = 1, end_line: int = 0) -> FilePage:
    data = load(root, path)
    lines = lines_of(decode(data, path)[0])
    if not lines:
        return FilePage(data, lines, 1, 0, 0)
    start, end = max(start_line, 1), end_line if end_line > 0 else len(lines)
    if start > len(lines) or end < start:
        raise ToolError("invalid_arguments", f"{path} has {len(lines)} lines, no lines {start_line} to {end_line}")
    end = min(end, len(lines))
    shown = min(end, start + MAX_LINES - 1)
    return FilePage(data, lines, start, shown, end - shown)


def load(root: Path, path: str) -> bytes:
    """The bytes of a text file; `ToolError` for one that is not there (with names that may have been meant)."""
    inside(root, path)
    try:
        data = read_bytes(root, path)
    except FileNotFoundError:
        near = ", ".join(_near(root, path)) or "no file at all"
        raise NoFile("invalid_arguments", f"no file {path!r}; there is {near}") from None
    if b"\0" in data:
        raise ToolError("invalid_arguments", f"{path} is not text")
    return data


def _near(root: Path, path: str) -> list[str]:
    """At most five files that a wrong path may mean: those of that name in other folders, else similar ones."""
    known = list(itertools.islice(files(root), _COMPARED))
    last = path.rstrip("/").rsplit("/", 1)[-1]
    same = [name for name in known if name.rsplit("/", 1)[-1] == last]
    return (same or difflib.get_close_matches(path[:200], known, 5, 0.4) or known)[:5]


MAX_NAMES = 100
_MAX_PATTERN = 500


def list_matching(root: Path, pattern: str) -> str:
    """The files whose path matches a glob, at most `MAX_NAMES` names, and how many were left out.

    `*`, `?` and `[ab]` stay within a name, `**` stands for any folders; a pattern without `/` is one of file names,
    in every folder.
    """
    fits = _matcher(pattern)
    names = [name for name in files(root) if fits(name.split("/"))]
    if not names:
        return f"no file matches {pattern!r}"
    more = [f"... {len(names) - MAX_NAMES} more"] if len(names) > MAX_NAMES else []
    return "\n".join(names[:MAX_NAMES] + more)


def _matcher(pattern: str) -> Callable[[Sequence[str]], bool]:
    """Whether a path, as its parts, matches; `ToolError` for a pattern that can mean no file of the folder."""
    pattern = pattern.strip().removeprefix("./")
    if not pattern:
        raise ToolError("invalid_arguments", "pattern is empty; ** lists all files")
    if len(pattern) > _MAX_PATTERN:
        raise ToolError("invalid_arguments", f"pattern has {len(pattern)} characters, at most {_MAX_PATTERN}")
    if pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
        raise ToolError("denied", f"{pattern!r} is outside of the repository: give it from the repository's top")
    if pattern.endswith("/"):
        pattern += "**"
    if "/" not in pattern:
        pattern = f"**/{pattern}"
    # Each name by its own expression, and folders step by step: no pattern takes long, whatever a path is like.
    steps = [None if part == "**" else re.compile(fnmatch.translate(part)) for part in pattern.split("/")]

    def reached(states: set[int]) -> set[int]:
        for state in sorted(states):
            while state < len(steps) and steps[state] is None:
                state += 1
                states.add(state)
        return states

    def fits(path: Sequence[str]) -> bool:
        states = reached({0})
        for part in path:
            following: set[int] = set()
            for state in states:
                if state < len(steps):
                    step = steps[state]
                    if step is None:
                        following.add(state)
                    elif step.match(part):
                        following.add(state + 1)
            states = reached(following)
        return len(steps) in states

    return fits
