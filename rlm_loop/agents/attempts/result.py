"""What an attempt at a patch came to, with what is known for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlm_loop.agents.attempts.evidence import TestsRun, runs_of_tests
from rlm_loop.messages import Usage
from rlm_loop.outcome import Outcome, Stop


@dataclass(frozen=True, repr=False)
class PatchResult:
    """A patch, and how it came about.

    `patch` is the git diff from the start as one would hand it in, empty for no change; it is there whatever the
    `stop` was.  `left_out` names changed files that are not in it, with the reason (a test file, say); the whole diff
    is `outcome.artifact`.  `evidence` is
    what speaks for it: the tests that the agent ran (`tests_run`) and, where attempts were judged, what the check said
    of this one (`check`: true, false, or `None` for no check), and whether the judge was the task's hidden score
    (`oracle`).  It never holds the score itself.  `attempts` describes each of several attempts, `chosen` is the index
    of the one that `patch` is of.  `usage` covers all of them, `seconds` is wall time, `trace` the file.
    """

    patch: str
    stop: Stop
    usage: Usage
    evidence: Mapping[str, Any]
    outcome: Outcome
    trace: str | None = None
    seconds: float = 0.0
    attempts: Sequence[Mapping[str, Any]] = ()
    chosen: int | None = None
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def tests_run(self) -> Sequence[TestsRun]:
        """The tests that the agent ran, in order."""
        return self.evidence["tests_run"]

    @property
    def oracle(self) -> bool:
        """Whether the task's hidden score had a say in it."""
        return bool(self.evidence["oracle"])

    @property
    def empty(self) -> bool:
        """Nothing was changed."""
        return not self.patch.strip()

    def __repr__(self) -> str:
        changed = sum(line.startswith("diff --git ") for line in self.patch.splitlines())
        return f"<PatchResult of {changed} files, stop={self.stop.value!r}, {self.outcome.steps} steps>"


def result_of(outcome: Outcome) -> PatchResult:
    """The result of an outcome, which may be a partial one."""
    known = outcome.evidence or {}
    return PatchResult(
        patch=outcome.artifact if isinstance(outcome.artifact, str) else "",
        stop=outcome.stop,
        usage=outcome.usage,
        evidence={
            **{name: value for name, value in known.items() if name not in ("attempts", "chosen", "conversation")},
            "tests_run": runs_of_tests(outcome.turns, known.get("conversation")),
            "check": known.get("check"),
            "oracle": bool(known.get("oracle", False)),
        },
        outcome=outcome,
        trace=outcome.trace,
        seconds=outcome.seconds,
        attempts=tuple(known.get("attempts", ())),
        chosen=known.get("chosen"),
    )
