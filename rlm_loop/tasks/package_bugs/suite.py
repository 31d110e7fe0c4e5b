"""The suite `package_bugs`: one bug in a real package, to be found and mended in a checkout, judged by its tests."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import partial
from typing import Any

from rlm_loop.outcome import Score
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.base import Suite, Task
from rlm_loop.tasks.package_bugs.bugs import Bug, Manifest, recorded
from rlm_loop.tasks.package_bugs.statements import STATEMENTS, Statement, statement
from rlm_loop.workspace import Workspace
from rlm_loop.workspace.evaluation import evaluate
from rlm_loop.workspace.testing import tests_tool

LICENCE = "MIT, BSD-3-Clause or Apache-2.0, by package (docs/tasks.md)"
TIMEOUT = 300.0  # seconds for a package's tests, which take at most about ten on an idle machine


def from_name(name: str, **options: Any) -> Suite:
    """`package_bugs`, or with the form of its questions, as `package_bugs@bare`; options as in `package_bugs`."""
    found = re.fullmatch(r"package[_-]bugs(?:@(\w+))?", name)
    if found is None or (found[1] and found[1] not in STATEMENTS):
        raise ValueError(f"there is no suite {name!r}; known are package_bugs@{', package_bugs@'.join(STATEMENTS)}")
    return package_bugs(**({"statement": found[1]} if found[1] else {}), **options)


def package_bugs(
    statement: Statement = "output",
    *,
    run_tests: bool = True,
    packages: Collection[str] | None = None,
    timeout: float = TIMEOUT,
    manifest: Manifest | None = None,
) -> Suite:
    """One task for each recorded bug; the artifact is the git diff.

    `statement` is what a model is told: the `output` of a failing test, a `description` of the behaviour, or the
    `bare` fact that a test fails.  `run_tests` says whether it may run the tests, `packages` names those that are
    wanted.  Resolved when all tests pass that passed before the bug was put in, `timeout` seconds for one run.
    Loading reads a file of ours; a package is fetched when its first checkout is opened (`PackageMissing` where
    that cannot be).  Raises `ValueError` for an unknown form or package.
    """
    if statement not in STATEMENTS:
        raise ValueError(f"there is no statement {statement!r}: there are {', '.join(STATEMENTS)}")
    bugs = (manifest or recorded()).bugs
    known = {bug.package.name for bug in bugs}
    if unknown := sorted(set(packages or ()) - known):
        raise ValueError(f"no bugs of {', '.join(unknown)} are recorded; there are {', '.join(sorted(known))}")
    chosen = [bug for bug in bugs if packages is None or bug.package.name in packages]
    return Suite(
        "package_bugs" if statement == "output" else f"package_bugs@{statement}",
        tuple(_task(bug, statement, run_tests, timeout) for bug in chosen),
        "mend one slip in a real package, in a git checkout with its tests",
        LICENCE,
    )


def checkout(bug: Bug, *, run_tests: bool = False, timeout: float = TIMEOUT) -> Workspace:
    """A package with a bug in it.  Its only commit has the bug already; with `run_tests` its tests are a tool too."""
    space = Workspace(bug.files())
    return space.offer(tests_tool(space, timeout=timeout)) if run_tests else space


def score(bug: Bug, timeout: float, attempt: Attempt) -> Score:
    """Apply the patch to a fresh checkout and run the package's tests.

    Raises only what is the machine's fault: `PackageMissing`, and what `evaluate` raises.
    """
    if not isinstance(attempt.artifact, str) or not attempt.artifact.strip():
        return Score(False, 0.0, "nothing was changed")
    return evaluate(
        partial(checkout, bug),
        attempt.artifact,
        fail_to_pass=bug.fail_to_pass,
        pass_to_pass=bug.pass_to_pass,
        protected=bug.package.tests,
        timeout=timeout,
    ).score()


def _task(bug: Bug, form: Statement, run_tests: bool, timeout: float) -> Task:
    return Task(
        id=bug.id,
        question=statement(bug, form),
        score=partial(score, bug, timeout),
        expected=f"{bug.file}:{bug.mutation.line}: {bug.mutation.before}",
        workspace=partial(checkout, bug, run_tests=run_tests, timeout=timeout),
        needs_repl=False,
        tags=("code", "repair", "package", bug.package.name, bug.mutation.kind),
        facts={
            "package": bug.package.name,
            "file": bug.file,
            "function": bug.function,
            "kind": bug.mutation.kind,
            "lines": bug.lines,
            "tests": len(bug.tests),
            "failing": len(bug.fail_to_pass),
        },
    )
