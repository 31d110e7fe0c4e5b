"""Judge a patch: apply it to a clean checkout, bring the tests back, run those that are listed."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from rlm_loop.tools.processes import refuse_full_disk
from rlm_loop.workspace import Workspace, WorkspaceError
from rlm_loop.workspace.evaluation.guard import Guard
from rlm_loop.workspace.evaluation.judged import judged_tree
from rlm_loop.workspace.evaluation.result import Evaluation, ListedOutcome, TestsCannotRun
from rlm_loop.workspace.evaluation.trees import trees
from rlm_loop.workspace.testing import Isolation, TestRun, run_tests


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
    test_timeout: float | None = None,
    env: Mapping[str, str] | None = None,
    place: Isolation = "auto",
) -> Evaluation:
    """Whether a patch resolves a task as SWE-bench defines it: all of `fail_to_pass` and `pass_to_pass` pass.

    `open_workspace` opens a clean checkout; `test_patch` makes the reference of it, which has the tests that judge.
    `protected` are globs of files, or folders, that a patch may not change, besides those that it never may: the
    files of the listed tests and of `test_patch`, whole folders `tests` of theirs, files named like tests, and what
    steers pytest or the start of Python (docs/repositories.md has the list).  Such changes are undone, and not held
    against it.  A skipped or a missing test has not passed; one that its file expects to fail has, when it does.
    The other arguments are as in `run_tests`; `timeout` holds for each of the two runs.

    Never raises for what a patch does.  Raises `ValueError` where no test is listed, `WorkspaceError` where the
    checkout cannot be made or `test_patch` does not fit it, `TestsCannotRun` where there is no interpreter with pytest,
    `OSError` where the disk is full, and what `run_tests` raises.
    """
    start = time.monotonic()
    wanted = list(dict.fromkeys([*fail_to_pass, *pass_to_pass]))
    if not wanted:
        raise ValueError("no test is listed: give fail_to_pass, pass_to_pass or both")
    with open_workspace() as space, trees(space) as git:
        base = space.base
        reference = git.applied(base, test_patch)
        try:
            patched = git.applied(base, patch)
        except WorkspaceError as error:
            refuse_full_disk()
            reason = f"the patch does not apply: {error}"[:300]
            return Evaluation(False, reason, applied=False, seconds=time.monotonic() - start)
        files = git.files(reference)
        guard = Guard.of(wanted, git.changes(base, reference), protected, git.links(files))
        final, refused = judged_tree(git, guard, files, reference, patched, python, (env or {}).get("PYTHONPATH", ""))
        found = Evaluation(False, "", restored=tuple(refused), refused=refused)
        if final == reference:
            what = "the patch is empty" if patched == base else "the patch changes nothing but tests and their settings"
            return replace(found, reason="; ".join([what, *_told(refused)]), seconds=time.monotonic() - start)
        try:
            git.lay(base, final)
        except (WorkspaceError, OSError) as error:
            if "disk is full" in str(error) or getattr(error, "errno", 0) == errno.ENOSPC:
                raise
            reason = f"the patched files cannot be written: {error}"[:300]
            return replace(found, reason=reason, applied=False, seconds=time.monotonic() - start)

        def run(tests: Sequence[str]) -> TestRun:
            asked = list(dict.fromkeys(_askable(test) for test in tests))
            return run_tests(
                space.root,
                asked,
                python=python,
                timeout=timeout,
                test_timeout=test_timeout,
                env=env,
                place=place,
                kept=kept,
            )

        kept = guard.kept(files)
        first = run(wanted)
        results: dict[str, ListedOutcome] = {test: _verdict(test, first) for test in wanted}
        bad = [test for test in wanted if results[test] != "passed"]
        if first.broken:
            raise TestsCannotRun(first.complaint)
        if bad:
            refuse_full_disk()
        doubt = first.distrusted
        if not bad and not doubt and first.touched:
            git.lay(final, reference)  # what the tests write without the patch they may write with it, except code
            also = {name for name in run(wanted).touched if not name.endswith(".py")}
            doubt = _rewritten([name for name in first.touched if name not in also])
        flaky: tuple[str, ...] = ()
        if bad and not first.timed_out:  # a test that hangs would cost its time again
            second = run(bad)
            flaky = tuple(test for test in bad if _verdict(test, second) == "passed")
    return replace(
        found,
        resolved=not (bad or doubt),
        reason=_reason(first, results, fail_to_pass, pass_to_pass, flaky, doubt, refused),
        results=results,
        flaky=flaky,
        only_flaky=bool(bad) and len(flaky) == len(bad),
        broke_others=bool(bad) and not set(bad) & set(fail_to_pass),
        seconds=time.monotonic() - start,
        test_seconds=first.seconds,
        messages=first.messages,
        output=first.output,
        cut_short=first.cut_short or first.complaint,
        timed_out=first.timed_out,
        place=first.place,
        note=first.note,
    )


def _rewritten(touched: Sequence[str]) -> str:
    return f"the run wrote to files that judge it: {_listed(touched)}" if touched else ""


def _askable(test: str) -> str:
    """The id to select a listed test by: of one whose parameters were cut off, the function."""
    return test.partition("[")[0] if _cut_off(test) else test


def _cut_off(test: str) -> bool:
    return test.count("[") > test.count("]")


def _verdict(test: str, run: TestRun) -> ListedOutcome:
    """What came of a listed test.

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
    flaky: Sequence[str],
    doubt: str,
    refused: Mapping[str, str],
) -> str:
    parts: list[str] = []
    for what, tests in (("tests to be fixed", fail_to_pass), ("tests that passed before", pass_to_pass)):
        names = list(dict.fromkeys(tests))
        bad = [f"{name} ({results[name]})" for name in names if results[name] != "passed"]
        if bad:
            parts.append(f"{len(bad)} of {len(names)} {what} did not pass: {_listed(bad)}")
    if not parts and not doubt:
        return "all listed tests pass"
    stop = run.complaint or run.cut_short or doubt
    parts = [*([stop] if stop else []), *parts, *([f"{len(flaky)} passed when run again"] if flaky else [])]
    return "; ".join([*parts, *_told(refused)])[:600]


def _told(refused: Mapping[str, str]) -> list[str]:
    names = [f"{name} ({why})" for name, why in refused.items()]
    return [f"not taken from the patch: {_listed(names)}"] if names else []


def _listed(names: Sequence[str], most: int = 3) -> str:
    """A few of these names in one line."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
