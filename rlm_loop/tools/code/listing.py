"""List files by a glob pattern."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from rlm_loop.tools.code.paths import files
from rlm_loop.tools.function import ToolError

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
