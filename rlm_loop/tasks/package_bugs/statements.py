"""What a model is told of a bug: the failing test's output, the behaviour in words, or only that it is there."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Literal, get_args

from rlm_loop.tasks.mutation import Mutation
from rlm_loop.tasks.package_bugs.bugs import Bug

Statement = Literal["output", "description", "bare"]
STATEMENTS: tuple[str, ...] = get_args(Statement)

_ORDER = {frozenset(pair) for pair in (("<", "<="), (">", ">="))}
_COMPARED = {
    "in": "decides the wrong way round whether something is among others",
    "is": "takes something for missing that is there, or the other way round",
    "==": "decides the wrong way round whether two things are the same",
    "<": "decides the wrong way round which of two things is larger",
}
_BEHAVIOUR = {
    "arithmetic": "computes something wrongly on the way to its result",
    "sign": "has the sign of a number wrong, or counts from the wrong end",
    "range": "goes through one item too many or too few",
    "off by one": "takes something for one item longer or shorter than it is",
    "slice": "cuts off one item too many or too few",
    "blank": "puts a blank where none belongs, or leaves one out",
    "call": "leaves out a last touch on a value, such as sorting it or dropping its duplicates",
    "name": "takes a step that is the counterpart of the right one, as lower case is of upper case",
    "negation": "does in one case what it should do in the opposite case",
    "flow": "stops going through its items at the wrong moment",
    "swapped arguments": "mixes up two values that it hands on",
    "swapped items": "gives two values in the wrong order",
    "swapped branches": "chooses the wrong one of two values",
    "missing argument": "forgets to hand an option on",
    "missing condition": "does not look at everything that its decision depends on",
    "wrong variable": "confuses two of its arguments",
    "default value": "does something else than it should when an optional argument is left out",
    "exception": "uses the wrong type of error for a problem",
    "string": "has a short text slightly wrong",
    "accumulation": "forgets what it had gathered before",
    "branch": "handles one case twice, in two ways that should exclude each other",
}  # fmt: skip


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
    before, after = mutation.before, mutation.after
    match mutation.kind:
        case "compare":
            if frozenset((before, after)) in _ORDER:
                return "handles the case exactly on a boundary wrongly"
            key = next((word for word in ("in", "is") if word in before.split()), "")
            return _COMPARED[key or ("==" if before in ("==", "!=") else "<")]
        case "boolean":
            if before == "and":
                return "is content with one condition where several have to hold"
            return "asks for several conditions where one is enough"
        case "constant" if before in ("True", "False"):
            return "acts as if an option of its own were set the other way"
        case "constant":
            return "is off by one in a number that it counts, indexes or compares with"
        case "missing statement" if before.startswith("raise"):
            return "does not raise an error where it should"
        case "missing statement":
            return "leaves out a step"
        case kind:
            return _BEHAVIOUR.get(kind, "misbehaves")


def module(bug: Bug) -> str:
    """The dotted name of the bug's module."""
    parts = list(PurePosixPath(bug.file).with_suffix("").parts)
    parts = parts[1:] if parts[0] == "src" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def observed(output: str) -> str:
    """The first line of the error in pytest's output, at most 200 characters."""
    found = re.search(r"^E\s+(\S.*)$", output, re.MULTILINE)
    return found[1].strip()[:200] if found else ""
