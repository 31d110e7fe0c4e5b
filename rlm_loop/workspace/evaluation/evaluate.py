"""Judge a patch: apply it to a clean checkout, bring the tests back, run those that are listed."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlm_loop.tools.processes import refuse_full_disk, run_group
from rlm_loop.workspace import Workspace, WorkspaceError
from rlm_loop.workspace.evaluation.guard import Guard, judged_tree
from rlm_loop.workspace.evaluation.result import Evaluation, ListedOutcome, TestsCannotRun
from rlm_loop.workspace.git import Git
from rlm_loop.workspace.testing import Isolation, TestRun, run_tests
from rlm_loop.workspace.trees import LINK, applied, content, differences, lay, listed


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
    checkout cannot be made or `test_patch` does not fit it, `TestsCannotRun` where there is no interpreter with pytest,
    or where no test runs with the patch and none without it, `OSError` where the disk is full, and what `run_tests`
    raises.
    """
    start = time.monotonic()
    wanted = list(dict.fromkeys([*fail_to_pass, *pass_to_pass]))
    if not wanted:
        raise ValueError("no test is listed: give fail_to_pass, pass_to_pass or both")
    with open_workspace() as space:
        base, git = space.base, Git(Path((space.root / ".git").read_text().removeprefix("gitdir:").strip()), space.root)
        reference = applied(git, base, test_patch if test_patch.strip() else "")
        try:
            patched = _patched(space, git, patch if patch.strip() else "")
        except WorkspaceError as error:
            refuse_full_disk()
            reason = f"the patch does not apply: {error}"[:300]
            return Evaluation(False, reason, applied=False, seconds=time.monotonic() - start)
        files = listed(git, reference)
        links = {name: os.fsdecode(content(git, blob)) for name, blob in files.items() if blob.mode == LINK}
        guard = Guard.of(wanted, differences(git, base, reference), protected, links)
        judged = judged_tree(git, guard, files, reference, patched, python, (env or {}).get("PYTHONPATH", ""))
        found = Evaluation(False, "", refused=judged.refused, judging=judged.judging)
        if judged.tree == reference:
            what = "the patch is empty" if patched == base else "the patch changes nothing but tests and their settings"
            return replace(found, reason="; ".join([what, *_notes(found)]), seconds=time.monotonic() - start)
        try:
            lay(git, base, judged.tree)
        except (WorkspaceError, OSError) as error:
            if "disk is full" in str(error) or getattr(error, "errno", 0) == errno.ENOSPC:
                raise
            reason = f"the patched files cannot be written: {error}"[:300]
            return replace(found, reason=reason, applied=False, seconds=time.monotonic() - start)

        # an id whose parameters were cut off selects the function
        asked = list(dict.fromkeys(test.partition("[")[0] if _cut_off(test) else test for test in wanted))
        options: dict[str, Any] = {"python": python, "timeout": timeout, "env": env, "place": place}
        options["kept"] = guard.kept(files)
        first = run_tests(space.root, asked, **options)
        results: dict[str, ListedOutcome] = {test: _verdict(test, first) for test in wanted}
        bad = [test for test in wanted if results[test] != "passed"]
        if first.broken:
            raise TestsCannotRun(first.complaint)
        if bad:
            refuse_full_disk()
        doubt = first.distrusted
        if first.complaint or (not bad and not doubt and first.touched):
            lay(git, judged.tree, reference)
            without = run_tests(space.root, asked, **options)
            if first.complaint and without.complaint:
                raise TestsCannotRun(f"no test runs, without the patch neither: {without.complaint}")
            # what the tests write without the patch they may write with it, except code
            also = {name for name in without.touched if not name.endswith(".py")}
            written = [name for name in first.touched if name not in also]
            doubt = doubt or (f"the run wrote to files that judge it: {_listed(written)}" if written else "")
    return replace(
        found,
        resolved=not (bad or doubt),
        reason=_reason(first, results, fail_to_pass, pass_to_pass, doubt, found),
        results=results,
        broke_others=bool(bad) and not set(bad) & set(fail_to_pass),
        seconds=time.monotonic() - start,
        run=first,
    )


def _patched(space: Workspace, git: Git, patch: str) -> str:
    """Return the start with a patch applied: by git, else by `patch`, which needs less of the lines around to agree."""
    try:
        return applied(git, space.base, patch)
    except WorkspaceError:
        if (program := shutil.which("patch")) is None:
            raise
        # Unified diffs alone: of another form, an ed script, lines are commands.
        command = [program, "--batch", "--fuzz=5", "-p1", "--unified", "--no-backup-if-mismatch", "--reject-file=-"]
        done = run_group(command, cwd=space.root, timeout=60, stdin=patch.encode("utf-8", "surrogatepass"))
        index = str(git.git_dir / "scratch")
        git("read-tree", space.base, GIT_INDEX_FILE=index)
        git("add", "--all", "--force", ".", GIT_INDEX_FILE=index)  # whatever a `.gitignore` of the patch says
        patched = git("write-tree", GIT_INDEX_FILE=index).decode().strip()
        lay(git, patched, space.base)
        if not done.ok or patched == space.base or git("ls-files", "--others", GIT_INDEX_FILE=index):
            raise
        return patched


def _cut_off(test: str) -> bool:
    return test.count("[") > test.count("]")


def _verdict(test: str, run: TestRun) -> ListedOutcome:
    """Return what came of a listed test.

    Some ids in SWE-bench's lists are cut off within their parameters; like its harness, those that begin alike
    answer for them, if they agree.
    """
    if test in run.results:
        return run.results[test]
    found = run.results if _cut_off(test) else {}
    alike: list[ListedOutcome] = [found[name] for name in found if name.startswith(test)]
    if alike and len(set(alike)) == 1:
        return alike[0]
    path = test.partition("::")[0]
    if "::" in test and run.results.get(path, "passed") != "passed":
        return run.results[path]  # its file could not be collected, or skips itself
    return "missing"


def _reason(
    run: TestRun,
    results: Mapping[str, ListedOutcome],
    fail_to_pass: Iterable[str],
    pass_to_pass: Iterable[str],
    doubt: str,
    found: Evaluation,
) -> str:
    failures: list[str] = []
    for what, tests in (("tests to be fixed", fail_to_pass), ("tests that passed before", pass_to_pass)):
        names = list(dict.fromkeys(tests))
        if bad := [f"{name} ({results[name]})" for name in names if results[name] != "passed"]:
            failures.append(f"{len(bad)} of {len(names)} {what} did not pass: {_listed(bad)}")
    if not failures and not doubt:
        return "; ".join(["all listed tests pass", *_notes(found, judging=True)])
    stop = run.complaint or run.cut_short or doubt
    return "; ".join([*([stop] if stop else []), *failures, *_notes(found)])[:600]


def _notes(found: Evaluation, *, judging: bool = False) -> list[str]:
    """Return what a reader of the verdict should know of the patch's files."""
    names = [f"{name} ({why})" for name, why in found.refused.items()]
    notes = [f"not taken from the patch: {_listed(names)}"] if names and not judging else []
    if judging and found.judging:
        notes.append(f"the patch changes what the tests import and what checks: {_listed(found.judging)}")
    return notes


def _listed(names: Sequence[str], most: int = 3) -> str:
    """Return a few of these names in one line."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
