"""Judge a patch: apply it to a clean checkout, bring the tests back, run those that are listed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from rlm_loop.outcome import Score
from rlm_loop.repl.results import enumerated
from rlm_loop.tools.processes import refuse_full_disk, watch
from rlm_loop.workspace import Workspace, WorkspaceError
from rlm_loop.workspace.evaluation.guard import Guard, judged_tree
from rlm_loop.workspace.git import Git
from rlm_loop.workspace.testing import Isolation, TestOutcome, TestRun, run_tests
from rlm_loop.workspace.trees import EMPTY, LINK, applied, changed, differences, lay

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
    `run` is the run of the tests.
    """

    resolved: bool
    reason: str
    results: Mapping[str, ListedOutcome] = field(default_factory=dict[str, ListedOutcome])
    broke_others: bool = False
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    judging: tuple[str, ...] = ()
    run: TestRun = field(default_factory=TestRun)

    def score(self) -> Score:
        """Return the verdict as a task's score, with the tests as evidence."""
        evidence: dict[str, Any] = {
            "tests": dict(self.results),
            "broke_others": self.broke_others,
            "restored": list(self.refused),
            "judging": list(self.judging),
            "place": self.run.place if self.results else "",
            "by": "patch",
        }
        return Score(self.resolved, float(self.resolved), self.reason, evidence)


def evaluate(
    open_workspace: Callable[[], Workspace],
    patch: str,
    *,
    fail_to_pass: Sequence[str],
    pass_to_pass: Sequence[str],
    test_patch: str = "",
    protected: Sequence[str] = (),
    python: str | None = None,
    timeout: float = 300.0,
    env: Mapping[str, str] | None = None,
    place: Isolation = "auto",
) -> Evaluation:
    """Return whether a patch resolves a task as SWE-bench defines it: all of `fail_to_pass` and `pass_to_pass` pass.

    `open_workspace` opens a clean checkout; `test_patch` makes the reference of it, which has the tests that judge.
    `protected` are globs of files, or folders, that a patch may not change, besides those that it never may: the
    files of the listed tests and of `test_patch`, whole folders `tests` of theirs, files named like tests, and what
    steers pytest or the start of Python (docs/repositories.md has the list).  Such changes are undone, and not held
    against it.  A skipped or a missing test has not passed; one that its file expects to fail has, when it does.
    The other arguments are as in `run_tests`.

    A patch that git does not apply is tried with `patch --fuzz=5`, as by the official harness.  Files of the patch that
    the tests import, and that check something themselves, are named in `Evaluation.judging` and in the reason.

    Never raises for what a patch does.  Raises `ValueError` where no test is listed, `WorkspaceError` where the
    checkout cannot be made or `test_patch` does not fit it, `TestsCannotRun` where no test can run, with the patch or
    without it, `OSError` where the disk is full, and what `run_tests` raises.
    """
    wanted = list(dict.fromkeys([*fail_to_pass, *pass_to_pass]))
    if not wanted:
        raise ValueError("no test is listed: give fail_to_pass, pass_to_pass or both")
    options: dict[str, Any] = {"python": python, "timeout": timeout, "env": env, "place": place}
    with open_workspace() as space:
        base, git = space.base, Git(Path((space.root / ".git").read_text().removeprefix("gitdir:").strip()), space.root)
        reference = applied(git, base, test_patch)
        try:
            patched = _patched(space, git, patch)
        except WorkspaceError as error:
            refuse_full_disk()
            return Evaluation(False, f"the patch does not apply: {error}"[:300])
        lay(git, base, reference)
        files = {name: blob for name, (_, blob) in differences(git, EMPTY, reference).items()}
        ends = {name: os.path.realpath(space.root / name) for name, blob in files.items() if blob.mode == LINK}
        links = {name: os.path.relpath(end, space.root) for name, end in ends.items()}
        guard = Guard(wanted, differences(git, base, reference), protected, links)
        tree, refused, judging = judged_tree(git, guard, files, reference, patched, python)
        found = Evaluation(False, "", refused=refused, judging=judging)
        names = [f"{name} ({why})" for name, why in refused.items()]
        notes = (
            [f"the patch changes what the tests import and what checks: {enumerated(judging, 3)}"] if judging else []
        )
        notes += [f"not taken from the patch: {enumerated(names, 3)}"] if names else []
        if tree == reference:
            what = "the patch is empty" if patched == base else "the patch changes nothing but tests and their settings"
            return replace(found, reason="; ".join([what, *notes]))
        try:
            lay(git, reference, tree)
        except (WorkspaceError, OSError) as error:
            refuse_full_disk()
            return replace(found, reason=f"the patched files cannot be written: {error}"[:300])

        # some of SWE-bench's ids are cut off within their parameters: such a one selects the function
        asked = list(dict.fromkeys(test.partition("[")[0] if _cut_off(test) else test for test in wanted))
        options["kept"] = guard.kept(files)
        first = run_tests(space.root, asked, **options)
        results = {test: _verdict(test, first) for test in wanted}
        bad = {test: outcome for test, outcome in results.items() if outcome != "passed"}
        if first.broken:
            raise TestsCannotRun(first.complaint)
        if bad:
            refuse_full_disk()
        doubt = first.distrusted
        if first.complaint or (not bad and not doubt and first.touched):
            lay(git, tree, reference)
            without = run_tests(space.root, asked, **options)
            if first.complaint and without.complaint:
                raise TestsCannotRun(f"no test runs, without the patch neither: {without.complaint}")
            # what the tests write without the patch they may write with it, except code
            also = {name for name in without.touched if not name.endswith(".py")}
            written = [name for name in first.touched if name not in also]
            doubt = doubt or (f"the run wrote to files that judge it: {enumerated(written, 3)}" if written else "")
    failed = enumerated([f"{test} ({outcome})" for test, outcome in bad.items()], 3)
    passed = f"{len(bad)} of {len(wanted)} listed tests did not pass: {failed}" if bad else "all listed tests pass"
    reason = "; ".join(filter(None, [first.complaint or first.cut_short or doubt, passed, *notes]))[:600]
    broke = bool(bad) and bad.keys().isdisjoint(fail_to_pass)
    resolved = not bad and not doubt
    return replace(found, resolved=resolved, reason=reason, results=results, broke_others=broke, run=first)


def _patched(space: Workspace, git: Git, patch: str) -> str:
    """Return the start with a patch applied: by git, else by `patch`, which needs less of the lines around to agree."""
    try:
        return applied(git, space.base, patch)
    except WorkspaceError:
        if (program := shutil.which("patch")) is None:
            raise
        # Unified diffs alone: of another form, an ed script, lines are commands.
        command = [program, "--batch", "--fuzz=5", "-p1", "--unified", "--no-backup-if-mismatch", "--reject-file=-"]
        done = watch(command, cwd=space.root, timeout=60, stdin=patch.encode("utf-8", "surrogatepass"))
        patched = changed(git, space.base, "add", "--all", "--force", ".")  # whatever a `.gitignore` of the patch says
        lay(git, patched, space.base)
        index = str(git.git_dir / "scratch")
        if not done.ok or patched == space.base or git("ls-files", "--others", GIT_INDEX_FILE=index):
            raise
        return patched


def _cut_off(test: str) -> bool:
    return test.count("[") > test.count("]")


def _verdict(test: str, run: TestRun) -> ListedOutcome:
    """Return what came of a listed test; for one whose id was cut off, what those that begin alike agree on."""
    if test in run.results:
        return run.results[test]
    alike: set[ListedOutcome] = {run.results[n] for n in run.results if _cut_off(test) and n.startswith(test)}
    if len(alike) == 1:
        return alike.pop()
    path = test.partition("::")[0]  # of its file, which could not be collected, or skips itself
    return run.results[path] if run.results.get(path, "passed") != "passed" else "missing"
