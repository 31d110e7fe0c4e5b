"""What a run of tests reports, line by line, and the result made of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, cast

from rlm_loop.repl.host.launch import Launch
from rlm_loop.tools.processes import Finished

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
        """Return whether the run came to its end, with at least one test passed and none failed."""
        counts = self.counts
        whole = not (self.complaint or self.cut_short or self.timed_out or self.missing)
        return whole and counts["passed"] > 0 and counts["failed"] + counts["error"] == 0


_WORSE: tuple[TestOutcome, ...] = ("passed", "skipped", "failed", "error")


class Reports:
    """Collects the reports of one run.

    They come from the process that runs the code under test, so a result never improves: of two for one test the
    worse one counts, and what is told after the last test counts as nothing.
    """

    def __init__(self, word: str) -> None:
        self._word = word.encode()
        self.results: dict[str, TestOutcome] = {}
        self.messages: dict[str, str] = {}
        self._running = ""
        self._complaint = ""
        self._internal = ""
        self._end: int | None = None
        self._finished = False
        self._fooled: str | None = None

    def hear(self, line: bytes) -> None:
        if not line.startswith(self._word):
            return
        try:
            self._take(cast("dict[str, Any]", json.loads(line[len(self._word) :])))
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
            return  # not a report of ours, whatever it begins with

    def _take(self, told: dict[str, Any]) -> None:
        match told.get("kind"):
            case "start":
                self._running = str(told["id"])
            case "result" if told["outcome"] in _WORSE and not self._finished:
                self._result(str(told["id"]), told["outcome"], str(told["text"]))
            case "complaint":
                self._complaint = str(told["text"])
            case "internal":
                self._internal = str(told["text"])
            case "control":
                self._fooled = str(told["passed"])
            case "finish":
                self._finished = True
            case "end":
                self._end = int(told["code"])
            case _:
                pass

    def _result(self, name: str, outcome: TestOutcome, text: str) -> None:
        self._running = ""
        if _WORSE.index(self.results.get(name, "passed")) <= _WORSE.index(outcome):
            self.results[name] = outcome
        if text:
            self.messages[name] = text

    def result(
        self, ended: Finished, command: Launch, ids: Sequence[str], folder: str, touched: tuple[str, ...]
    ) -> TestRun:
        """What was reported; the name of the copy, another one each time, is left out of all texts."""
        ended = replace(ended, output=ended.output.replace(folder, "."))
        self.messages = {name: text.replace(folder, ".") for name, text in self.messages.items()}
        cut = self._cut(ended)
        if cut and self._running:
            self.results[self._running] = "error"
            self.messages[self._running] = cut
        missing = tuple(n for n in ids if n not in self.results and not any(_answers(f, n) for f in self.results))
        return TestRun(
            results=self.results,
            seconds=ended.seconds,
            timed_out=ended.timed_out,
            output=ended.output,
            complaint="" if self.results else self._why(ended, cut, ids),
            cut_short=cut,
            messages=self.messages,
            missing=missing,
            place=command.kind,
            note=command.note,
            broken=bool(self._complaint),
            touched=touched,
            distrusted=self._distrusted(),
        )

    def _distrusted(self) -> str:
        if not self.results:
            return ""
        if not self._finished:
            return "the run did not come to its end, after the last test"
        if self._fooled is None:
            return "the control tests were not run"
        return f"control tests, which have to fail, passed: {self._fooled}" if self._fooled else ""

    def _cut(self, ended: Finished) -> str:
        where = f" in {self._running}" if self._running else ""
        if ended.timed_out:
            return f"stopped after {ended.seconds:.0f} s{where}"
        if self._end is None:
            status = f"signal {-ended.code}" if ended.code < 0 else f"exit status {ended.code}"
            return f"the interpreter ended early ({status}){where}"
        if self._end in (2, 3):
            last = (self._internal.strip().splitlines() or ["interrupted"])[-1]
            return f"pytest ended early{where}: {last}"
        return ""

    def _why(self, ended: Finished, cut: str, ids: Sequence[str]) -> str:
        if self._complaint:
            return f"pytest does not start: {self._complaint}"
        last = next((line for line in reversed(ended.output.splitlines()) if line.strip()), "no output")
        if cut:
            return f"no test ran: {cut}: {last}"[:500]
        if self._end == 4:
            lines = ended.output.splitlines()
            error = next((line for line in lines if line.startswith(("ERROR", "E ")) or "error:" in line), last)
            return f"pytest cannot use the repository's settings: {error}"[:500]
        return "no test has one of these ids" if ids else "pytest found no tests"


def _answers(found: str, asked: str) -> bool:
    asked = asked.rstrip("/")
    return found == asked or asked == "." or found.startswith((asked + "::", asked + "[", asked + "/"))
