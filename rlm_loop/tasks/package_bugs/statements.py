"""What a model is told of a bug: the failing test's output, the behaviour in words, or only that it is there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal, get_args

from rlm_loop.tasks.mutation import Mutation
from rlm_loop.tasks.package_bugs.bugs import Bug
from rlm_loop.tasks.packaged import packaged

Statement = Literal["output", "description", "bare"]
STATEMENTS: tuple[str, ...] = get_args(Statement)

_ORDER = {frozenset(pair) for pair in (("<", "<="), (">", ">="))}
_BEHAVIOURS: Mapping[str, str] = packaged("bug_behaviours.json")


def statement(bug: Bug, form: Statement) -> str:
    """The task's question in one of the three forms; none of them names a line or shows the change."""
    task = "Find the bug in the source code and fix it. Leave the tests as they are."
    if form == "bare":
        return f"A test of this repository fails. {task}"
    if form == "description":
        return f"{description(bug)}\n\n{task}"
    return f"A test of this repository ({bug.package.name}) fails:\n\n{bug.fail_to_pass[0]}\n\n{bug.output}\n\n{task}"


def description(bug: Bug) -> str:
    """A user's report: which function, what it is for, what kind of thing goes wrong, and what was seen."""
    parts = [f"`{bug.function}` in `{module(bug)}` {behaviour(bug.mutation)}."]
    if bug.purpose:
        parts.append(f'It is documented as: "{bug.purpose}"')
    if seen := observed(bug.output):
        parts.append(f"Seen: {seen}")
    return "\n".join(parts)


def behaviour(mutation: Mutation) -> str:
    """What goes wrong, in words that fit every mutation of its sort."""
    sort, before = mutation.kind, mutation.before
    match sort:
        case "compare":
            sort = f"compare {_compared(before, mutation.after)}"
        case "boolean":
            sort = f"boolean {before}"
        case "constant" if before in ("True", "False"):
            sort = "constant option"
        case "missing statement" if before.startswith("raise"):
            sort = "missing statement raise"
        case _:
            pass
    return _BEHAVIOURS.get(sort, "misbehaves")


def _compared(before: str, after: str) -> str:
    if frozenset((before, after)) in _ORDER:
        return "boundary"
    return next((word for word in ("in", "is") if word in before.split()), "==" if before in ("==", "!=") else "<")


def module(bug: Bug) -> str:
    """The dotted name of the bug's module."""
    parts = list(PurePosixPath(bug.file).with_suffix("").parts)
    parts = parts[1:] if parts[0] == "src" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def observed(output: str) -> str:
    """The first line of the error in pytest's output, at most 200 characters."""
    found = re.search(r"^E\s+(\S.*)$", output, re.MULTILINE)
    return found[1].strip()[:200] if found else ""
