"""List the files that match a glob pattern."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from pathlib import Path

from rlm_loop.tools.code.paths import files
from rlm_loop.tools.function import ToolError

MAX_NAMES = 100
_MAX_PATTERN = 500


def list_matching(root: Path, pattern: str) -> str:
    """Return the files whose path matches a glob, at most `MAX_NAMES` names, and how many were left out.

    `*`, `?` and `[ab]` stay within a name, `**` stands for any folders; a pattern without `/` is one of file names,
    in every folder.
    """
    fits = _matcher(pattern)
    names = [name for name in files(root) if fits(name)]
    more = [f"... {len(names) - MAX_NAMES} more"] if len(names) > MAX_NAMES else []
    return "\n".join(names[:MAX_NAMES] + more) or f"no file matches {pattern!r}"


def _matcher(pattern: str) -> Callable[[str], bool]:
    """Return a test for paths; `ToolError` for a pattern that can mean no file of the folder."""
    pattern = pattern.strip().removeprefix("./")
    if not pattern:
        raise ToolError("invalid_arguments", "pattern is empty; ** lists all files")
    if len(pattern) > _MAX_PATTERN:
        raise ToolError("invalid_arguments", f"pattern has {len(pattern)} characters, at most {_MAX_PATTERN}")
    if pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
        raise ToolError("denied", f"{pattern!r} is outside of the repository: give it from the repository's top")
    pattern = f"{pattern}**" if pattern.endswith("/") else pattern if "/" in pattern else f"**/{pattern}"
    # Each name by its own expression, and folders step by step: no pattern takes long, whatever a path is like.
    steps = [None if name == "**" else re.compile(fnmatch.translate(name)) for name in pattern.split("/")]

    def reached(states: set[int]) -> set[int]:
        for i, step in enumerate(steps):
            if i in states and step is None:
                states.add(i + 1)
        return states

    def fits(path: str) -> bool:
        states = reached({0})
        for part in path.split("/"):
            following: set[int] = set()
            for i in states - {len(steps)}:
                if (step := steps[i]) is None:
                    following.add(i)
                elif step.match(part):
                    following.add(i + 1)
            states = reached(following)
        return len(steps) in states

    return fits
