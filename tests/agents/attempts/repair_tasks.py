"""Repair tasks of HumanEval and the replies with which a scripted model works on them."""

from __future__ import annotations

import functools
import json
from dataclasses import replace

from rlm_loop.models import Reply, ToolCall
from rlm_loop.tasks import CheckResult, Task, get_suite
from rlm_loop.workspace import Workspace

FILE = "solution.py"


@functools.cache
def task() -> Task:
    """One repair task; its bug is one wrong word in one line."""
    return next(iter(get_suite("humaneval-repair", ids=["HumanEval/0"])))


@functools.cache
def bug_line() -> int:
    assert task().workspace is not None
    with task().workspace() as space:
        pairs = zip((space.root / FILE).read_text().split("\n"), str(task().expected).split("\n"), strict=True)
        return next(number for number, (is_so, right) in enumerate(pairs, 1) if is_so != right)


def right_line() -> str:
    """The line as it has to be."""
    return str(task().expected).split("\n")[bug_line() - 1]


def call(name: str, **arguments: object) -> Reply:
    return Reply("", (ToolCall("c1", name, json.dumps(arguments)),), "tool_calls")


def edit(text: str, line: int | None = None, path: str = FILE) -> Reply:
    at = bug_line() if line is None else line
    return call("apply_edit", path=path, start_line=at, end_line=at, replacement=text)


def fix() -> Reply:
    return edit(right_line())


def wrong(word: str = "0") -> Reply:
    """An edit that compiles and is no fix."""
    line = right_line()
    return edit(line[: len(line) - len(line.lstrip())] + f"return {word}")


def done(text: str = "done") -> Reply:
    return call("final_answer", answer=text)


def sees_the_fix(space: Workspace) -> CheckResult:
    """A visible check: it only looks at whether the line is right."""
    if right_line() in (space.root / FILE).read_text().split("\n"):
        return CheckResult(True, tests={"line": "passed", "file": "passed"})
    return CheckResult(False, "the line is wrong", {"line": "failed", "file": "passed"})


def checked() -> Task:
    """The task with that check as its own."""
    return replace(task(), check=sees_the_fix)
