"""What a run of a repository's tests came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

TestOutcome = Literal["passed", "failed", "error", "skipped"]


@dataclass(frozen=True)
class TestRun:
    """One run of pytest.

    `results` maps each test's node id (relative to the repository) to what came of it; a file that could not be
    collected is an `error` under its own path.  A test that was expected to fail, by its own file, has `passed`
    (as SWE-bench has it).  `messages` are the texts of the first failures, `missing` the ids asked for that no
    test answers to.  The test that ran when the time was up or the interpreter ended is an `error`; those after
    it have no result, and `cut_short` says in a line why.  `complaint` says why nothing ran at all; `broken` is true
    where that is for want of an interpreter with pytest, and so says nothing of the repository.

    `seconds` is the wall time of the process, `output` what it printed (its middle left out beyond a cap).
    `place` is the isolation that was in force (`plain`, `hardened`, `sandbox`, `container`), `note` what to know
    about it.

    `touched` are those of the files to keep that something wrote to, moved or removed, also where they were put back.
    `distrusted` says why the results are not to be believed, if so: a test that has to fail passed, or the run ended
    before its end was told.
    """

    __test__: ClassVar[bool] = False  # no class of tests, whatever its name is

    results: Mapping[str, TestOutcome] = field(default_factory=dict[str, TestOutcome])
    seconds: float = 0.0
    timed_out: bool = False
    output: str = ""
    complaint: str = ""
    cut_short: str = ""
    messages: Mapping[str, str] = field(default_factory=dict[str, str])
    missing: tuple[str, ...] = ()
    place: str = "plain"
    note: str = ""
    broken: bool = False
    touched: tuple[str, ...] = ()
    distrusted: str = ""

    @property
    def counts(self) -> Mapping[str, int]:
        """How many tests passed, failed, ended in an error or were skipped."""
        counted = Counter(self.results.values())
        return {name: counted[name] for name in ("passed", "failed", "error", "skipped")}

    @property
    def ok(self) -> bool:
        """Whether the run came to its end, with at least one test passed and none failed."""
        counts = self.counts
        whole = not (self.complaint or self.cut_short or self.timed_out or self.missing)
        return whole and counts["passed"] > 0 and counts["failed"] + counts["error"] == 0
