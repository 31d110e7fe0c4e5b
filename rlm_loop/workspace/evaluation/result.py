"""What judging a patch came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from rlm_loop.outcome import Score
from rlm_loop.workspace.testing import TestOutcome

ListedOutcome = TestOutcome | Literal["missing"]


class TestsCannotRun(RuntimeError):
    """This machine has no interpreter with pytest for the tests: nothing can be said of the patch."""

    __test__: ClassVar[bool] = False  # no class of tests, whatever its name is


@dataclass(frozen=True)
class Evaluation:
    """How a patch was judged.

    `resolved` is true when every listed test passed in the first run.  `results` says of each of them what came of
    it then; `missing` is a test that was not there, or not reached.  `flaky` are those that did not pass and then
    did in a second run: they count as they were first.
    `broke_others` says that all tests to be fixed pass, and others that passed before do not.
    `refused` are files that the patch had changed and that were taken from the reference, with the reason for each;
    `judging` those that were not, though the tests import them and they check something: somebody should look at them.
    `applied` says whether the patch fits.  `seconds` is the wall time of everything, `test_seconds` that of the first
    run of the tests.  `messages`, `output`, `cut_short`, `place` and `note` are those of the first run (see `TestRun`).
    """

    resolved: bool
    reason: str
    results: Mapping[str, ListedOutcome] = field(default_factory=dict[str, ListedOutcome])
    flaky: tuple[str, ...] = ()
    broke_others: bool = False
    applied: bool = True
    judging: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    seconds: float = 0.0
    test_seconds: float = 0.0
    messages: Mapping[str, str] = field(default_factory=dict[str, str])
    output: str = ""
    cut_short: str = ""
    timed_out: bool = False
    place: str = ""
    note: str = ""

    @property
    def only_flaky(self) -> bool:
        """Whether nothing was wrong but tests that passed in a second run."""
        return bool(self.flaky) and sum(outcome != "passed" for outcome in self.results.values()) == len(self.flaky)

    @property
    def restored(self) -> tuple[str, ...]:
        """The names of the refused files."""
        return tuple(self.refused)

    def score(self) -> Score:
        """The same as a task's score, with the tests as evidence."""
        evidence: dict[str, Any] = {
            "tests": dict(self.results),
            "flaky": list(self.flaky),
            "only_flaky": self.only_flaky,
            "broke_others": self.broke_others,
            "applied": self.applied,
            "restored": list(self.restored),
            "judging": list(self.judging),
            "timed_out": self.timed_out,
            "place": self.place,
            "seconds": round(self.seconds, 3),
            "by": "patch",
        }
        return Score(self.resolved, float(self.resolved), self.reason, evidence)
