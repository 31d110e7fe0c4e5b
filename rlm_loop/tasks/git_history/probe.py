"""Which tests tell a fix: its tests are run without and with its change, and the answer is kept on disk."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.messages import digest
from rlm_loop.tasks.clones import Clone
from rlm_loop.tasks.git_history.commits import Commit
from rlm_loop.tasks.jsonl import SuiteFileError, write_lines
from rlm_loop.workspace import Workspace, WorkspaceError

if TYPE_CHECKING:
    from rlm_loop.workspace.testing import Isolation, TestRun

_FORMAT = 1  # of what is kept, and of how it is found out


@dataclass(frozen=True)
class Split:
    """A commit's change in two parts, and the test modules that are run."""

    source: str
    tests: str
    modules: tuple[str, ...]


@dataclass(frozen=True)
class Probed:
    """What the tests of a fix did; `reason` says why it is no task (empty: it is one).  `seconds` is all runs together.

    `ran` is false where the tests could not be run at all: that says nothing about the commit, and is not kept.
    """

    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    reason: str = ""
    ran: bool = True
    seconds: float = 0.0


@dataclass(frozen=True)
class Prober:
    """Runs the tests of fixes in throw-away checkouts of one clone.

    `python` is the interpreter of an environment with what the tests need, `timeout` is in seconds for one run,
    `place` is where they run (see `testing.Isolation`).
    """

    clone: Clone
    python: str | None
    timeout: float
    cache: Path | None
    place: Isolation = "auto"

    def known(self, commit: Commit, split: Split) -> Probed | None:
        """What an earlier call found out; `None` where there was none, or what it kept is damaged."""
        if self.cache is None:
            return None
        try:
            kept: Any = json.loads(self._file(commit, split).read_text(encoding="utf-8"))
            lists = tuple(kept["fail_to_pass"]), tuple(kept["pass_to_pass"])
            return Probed(*lists, str(kept["reason"]), True, float(kept["seconds"]))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def probe(self, commit: Commit, split: Split) -> Probed:
        """Run the tests before and after the change, twice where a task may come of it, and keep the answer."""
        found = self._probe(commit, split)
        if found.ran and self.cache is not None:
            with contextlib.suppress(SuiteFileError):  # what cannot be kept is found out again
                write_lines(self._file(commit, split), json.dumps(asdict(found)), ".json", "what is kept is JSON")
        return found

    def _probe(self, commit: Commit, split: Split) -> Probed:
        spent = 0.0
        seen: list[tuple[TestRun, TestRun]] = []
        try:
            with self._opened(commit) as old, self._opened(commit) as new:
                old.apply(split.tests)
                new.apply(split.tests)
                new.apply(split.source)
                for _ in range(2):  # the second time shows which tests do not always do the same
                    after = self._run(new, split)
                    spent += after.seconds
                    if after.complaint or after.timed_out:
                        why = after.complaint or after.cut_short
                        return Probed(reason=f"its tests could not be run: {why}", ran=False, seconds=spent)
                    if "passed" not in after.results.values():
                        return Probed(reason="none of its tests passes after it", seconds=spent)
                    before = self._run(old, split)
                    spent += before.seconds
                    if before.timed_out:
                        why = f"without the change: {before.cut_short}"
                        return Probed(reason=f"its tests could not be run: {why}", ran=False, seconds=spent)
                    seen.append((before, after))
                    if not _told(seen, False):
                        return Probed(reason="no test fails before it and passes after it", seconds=round(spent, 3))
        except WorkspaceError as error:
            return Probed(reason=f"its change cannot be repeated: {error}"[:300], seconds=round(spent, 3))
        return Probed(_told(seen, False), _told(seen, True), seconds=round(spent, 3))

    def _opened(self, commit: Commit) -> Workspace:
        return Workspace(self.clone.path, commit=commit.parent)

    def _run(self, space: Workspace, split: Split) -> TestRun:
        from rlm_loop.workspace.testing import run_tests

        return run_tests(space.root, split.modules, python=self.python, timeout=self.timeout, place=self.place)

    def _file(self, commit: Commit, split: Split) -> Path:
        interpreter = self.python or f"{sys.executable} {sys.version}"
        settings = digest([_FORMAT, interpreter, self.timeout, asdict(split)])[:16]
        assert self.cache is not None
        return self.cache / commit.sha[:2] / f"{commit.sha}-{settings}.json"


def _told(seen: Sequence[tuple[TestRun, TestRun]], passed_before: bool) -> tuple[str, ...]:
    """The tests that passed after the change in every run, and before it in every run or in none."""
    return tuple(
        sorted(test for test in seen[0][1].results if all(_did(test, *runs) == passed_before for runs in seen))
    )


def _did(test: str, before: TestRun, after: TestRun) -> bool | None:
    """Whether a test that passes after the change passed before it; `None` where that cannot be said."""
    if after.results.get(test) != "passed":
        return None
    if test not in before.results and before.cut_short:
        return None  # perhaps it was only not reached
    return before.results.get(test) == "passed"
