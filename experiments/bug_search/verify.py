"""Check recorded bugs on this machine: the tests say what the manifest says, and taking the bug back resolves it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rlm_loop.tasks.base import Attempt
from rlm_loop.tasks.package_bugs.bugs import Bug
from rlm_loop.tasks.package_bugs.sdists import Package, source_files
from rlm_loop.tasks.package_bugs.suite import TIMEOUT, checkout, score
from rlm_loop.workspace import Workspace
from rlm_loop.workspace.testing import run_tests


def sample(bugs: Sequence[Bug], count: int | None) -> list[Bug]:
    """So many of the bugs, evenly spread over the list; all for `None`."""
    if count is None or count >= len(bugs):
        return list(bugs)
    return [bugs[number * len(bugs) // count] for number in range(count)]


def verify(bugs: Sequence[Bug]) -> Iterator[tuple[Bug, str]]:
    """Each bug with what is wrong with it (empty: nothing).

    The tests are run with the bug for each.  Without it they are run for the first bug of a package: the others'
    checkouts are the same files, git tree by git tree, once the bug is taken back.
    """
    published: dict[Package, str] = {}  # the tree of its files
    mended: dict[str, str] = {}  # tree of a package without a bug, and what is wrong with its tests
    for bug in bugs:
        problem = with_bug(bug)
        patch, tree = fix(bug)
        if bug.package not in published:
            published[bug.package] = original(bug)
        if tree != published[bug.package]:
            problem = problem or "taking it back does not give the package's files"
        if tree not in mended:
            judged = score(bug, TIMEOUT, Attempt(artifact=patch))
            mended[tree] = "" if judged.resolved else f"not resolved by taking it back: {judged.reason}"
        yield bug, problem or mended[tree]


def with_bug(bug: Bug) -> str:
    """What the tests say with the bug that the manifest does not; empty where they agree."""
    with checkout(bug) as space:
        run = run_tests(space.root, bug.package.tests, timeout=TIMEOUT)  # where patches are judged, too
    if not run.results:
        return run.complaint or run.cut_short
    passing = [name for name in bug.fail_to_pass if run.results.get(name) not in ("failed", "error")]
    failing = [name for name in bug.pass_to_pass if run.results.get(name) != "passed"]
    if passing:
        return f"{len(passing)} tests should fail and do not: {passing[0]}"
    return f"{len(failing)} tests should pass and do not: {failing[0]}" if failing else ""


def fix(bug: Bug) -> tuple[str, str]:
    """The patch that takes the bug back, and the git tree id of the files after it."""
    with checkout(bug) as space:
        (space.root / bug.file).write_bytes(source_files(bug.package)[bug.file])
        return space.diff(), space.snapshot()


def original(bug: Bug) -> str:
    """The git tree id of the package's files as they were published."""
    with Workspace(source_files(bug.package)) as space:
        return space.snapshot()
