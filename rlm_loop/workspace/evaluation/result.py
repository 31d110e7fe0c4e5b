"""What judging a patch came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from rlm_loop.outcome import Score
from rlm_loop.workspace.testing import TestOutcome, TestRun

ListedOutcome = TestOutcome | Literal["missing"]


class TestsCannotRun(RuntimeError):
    """The tests cannot run here, whatever the patch: no interpreter with pytest, or no test runs without the patch."""

    __test__: ClassVar[bool] = False  # no class of tests, whatever its name is


@dataclass(frozen=True)
class Evaluation:
    """The verdict on a patch.

    `resolved` is true when every listed test passed.  `results` has what came of each; `missing` is a test that was not
    there, or not reached.  `broke_others` says that all tests to be fixed pass, and others that passed before do not.
    `refused` are files that the patch had changed and that were taken from the reference, with the reason for each;
    `judging` those that were not, though the tests import them and they check something: somebody should look at them.
    `applied` says whether the patch fits.  `seconds` is the wall time of everything, `run` the run of the tests.
    """

    resolved: bool
    reason: str
    results: Mapping[str, ListedOutcome] = field(default_factory=dict[str, ListedOutcome])
    broke_others: bool = False
    applied: bool = True
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    judging: tuple[str, ...] = ()
    seconds: float = 0.0
    run: TestRun = field(default_factory=TestRun)

    def score(self) -> Score:
        """Return the verdict as a task's score, with the tests as evidence."""
        evidence: dict[str, Any] = {
            "tests": dict(self.results),
            "broke_others": self.broke_others,
            "applied": self.applied,
            "restored": list(self.refused),
            "judging": list(self.judging),
            "timed_out": self.run.timed_out,
            "place": self.run.place if self.results else "",
            "seconds": round(self.seconds, 3),
            "by": "patch",
        }
        return Score(self.resolved, float(self.resolved), self.reason, evidence)
