"""What the actions of a run did to a repository, the same for calls and for cells."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from rlm_loop.actions import CallTool, Observation, RunCode
from rlm_loop.outcome import Outcome, Turn
from rlm_loop.repl.text import clip

EDIT_TOOL, TESTS_TOOL = "apply_edit", "run_tests"
_SHOWN = 1000  # characters of a test run's output that are kept
_NOT_DONE = ("skipped", "unknown_tool", "malformed", "cut_off")


@dataclass(frozen=True)
class ActionStep:
    """One action that was carried out, and what came of it."""

    turn: int
    action: CallTool | RunCode
    seen: Observation

    @property
    def worked(self) -> bool:
        return self.seen.ok

    @property
    def changed(self) -> bool:
        """Whether files changed."""
        return any(self.seen.effects.get(kind) for kind in ("added", "changed", "removed"))

    @property
    def edits(self) -> bool:
        """An edit was tried, or files changed in another way."""
        return self.changed or self.uses(EDIT_TOOL)

    def uses(self, tool: str) -> bool:
        """Whether the tool was called: by name, or in the text of a cell."""
        if isinstance(self.action, CallTool):
            return self.action.name == tool
        return re.search(rf"\b{re.escape(tool)}\(", self.action.code) is not None

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of a call; empty where they cannot be read."""
        if isinstance(self.action, RunCode):
            return {}
        try:
            read: object = json.loads(self.action.arguments or "{}", strict=False)
        except ValueError:
            return {}
        return cast("dict[str, Any]", read) if isinstance(read, dict) else {}

    def shows(self, file: str) -> bool:
        """Whether lines of a file were shown or changed by it.

        That is: its result holds `file:line` as searches and tracebacks have it; or it worked and named the file, by
        the argument `path` of a call or in the text of a cell.
        """
        if re.search(rf'(?<![\w./-]){re.escape(file)}(?::\d|", line \d)', self.seen.text):
            return True
        if not self.worked and not self.changed:
            return False
        if isinstance(self.action, RunCode):
            return re.search(rf"(?<![\w-]){re.escape(file)}(?![\w-])", self.action.code) is not None
        path = self.arguments.get("path")
        return isinstance(path, str) and posixpath.normpath(path) == file


@dataclass(frozen=True)
class TestsRun:
    """One time that the agent ran tests: in which turn, which ones, and what it was shown of the results.

    `ok` is whether the tool did its work, not whether the tests passed; `counts` says how many `passed`, `failed`, were
    `errors` or `skipped` (empty where that was not shown).  `current` is false where files were changed after it, so
    that it says nothing of the final patch.
    """

    __test__ = False  # its name is no reason for pytest to collect it

    turn: int
    selector: str
    ok: bool
    output: str
    seconds: float
    current: bool
    counts: Mapping[str, int] = field(default_factory=dict[str, int])


def patch_of(outcome: Outcome) -> str:
    """The patch that a run came to; empty where there is none."""
    return outcome.artifact if isinstance(outcome.artifact, str) else ""


def steps_of(turns: Sequence[Turn]) -> tuple[ActionStep, ...]:
    """The calls and cells of the turns that were carried out, in order."""
    return tuple(
        ActionStep(turn.index, action, seen)
        for turn in turns
        for action, seen in zip(turn.actions, turn.observations, strict=True)
        if isinstance(action, CallTool | RunCode) and (seen.failure is None or seen.failure.kind not in _NOT_DONE)
    )


def runs_of_tests(turns: Sequence[Turn], only: Sequence[int] | None = None) -> tuple[TestsRun, ...]:
    """The tests that were run in the turns (or `only` those), by a call of `run_tests` or by a cell that calls it."""
    steps = steps_of([turn for turn in turns if only is None or turn.index in only])
    last = max((number for number, step in enumerate(steps) if step.changed), default=-1)
    return tuple(
        TestsRun(
            step.turn,
            _selector(step),
            step.worked,
            clip(step.seen.text, _SHOWN)[0],
            step.seen.seconds,
            n >= last,
            _counts(step.seen.text),
        )
        for n, step in enumerate(steps)
        if step.uses(TESTS_TOOL)
    )


#: The first line of what the tool returns (`testing.summary`).
_SUMMARY = re.compile(r"^\d+ passed, \d+ failed, \d+ errors(?:, \d+ skipped)?$", re.MULTILINE)


def _counts(text: str) -> dict[str, int]:
    line = _SUMMARY.search(text)
    return {} if line is None else {name: int(n) for n, name in re.findall(r"(\d+) (\w+)", line.group())}


def _selector(step: ActionStep) -> str:
    if isinstance(step.action, CallTool):
        return " ".join(str(value) for value in step.arguments.values())
    return next(line.strip() for line in step.action.code.splitlines() if TESTS_TOOL in line)
