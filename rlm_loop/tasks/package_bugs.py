"""The suite `package_bugs`: a slip in a real package, to be mended in a git checkout, judged by the package's tests."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

from rlm_loop.outcome import Score
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.base import Suite, Task
from rlm_loop.tasks.mutation import Mutation, apply
from rlm_loop.tasks.packaged import packaged
from rlm_loop.tasks.sdists import Package, source_files
from rlm_loop.workspace import Workspace
from rlm_loop.workspace.evaluation import evaluate
from rlm_loop.workspace.testing import tests_tool

LICENCE = "MIT, BSD-3-Clause or Apache-2.0, by package (docs/tasks.md)"
TIMEOUT = 300.0  # seconds for a package's tests, which take at most about ten on an idle machine


@dataclass(frozen=True)
class Bug:
    """A mutation of `function` (dotted for a method) in `file`, and the verdict of the package's tests on it.

    `fail_to_pass` are the tests that fail with it and pass without it; `tests` are all tests of the package that
    pass without it each time.  `output` is what the first failing test says, `lines` the length of the file.
    """

    id: str
    package: Package
    file: str
    function: str
    mutation: Mutation
    fail_to_pass: tuple[str, ...]
    tests: tuple[str, ...]
    output: str
    lines: int

    @cached_property
    def pass_to_pass(self) -> tuple[str, ...]:
        """The tests that pass with the bug and without it."""
        failing = set(self.fail_to_pass)
        return tuple(name for name in self.tests if name not in failing)

    def files(self) -> dict[str, bytes]:
        """The package's files with the bug in its place; the text without it is nowhere among them."""
        files = source_files(self.package)
        mutated = apply(files[self.file].decode("utf-8"), self.mutation)  # as bytes: line ends stay as they are
        return {**files, self.file: mutated.encode("utf-8")}


@cache
def recorded() -> tuple[Bug, ...]:
    """The bugs that come with rlm_loop, in the suite's order.

    They are one JSON file, so that loading the suite runs nothing and fetches nothing.  It has the names of a
    package's tests once, by zlib and in base 85; a bug names those that it breaks by index.
    """
    data = packaged("package_bugs.json")
    packages, tests = dict[str, Package](), dict[str, tuple[str, ...]]()
    for name, row in data["packages"].items():
        packages[name] = Package(name, row["version"], row["sha256"], tuple(row["protected"]))
        tests[name] = tuple(zlib.decompress(base64.b85decode(row["tests"])).decode("utf-8").split("\n"))
    return tuple(_bug(row, packages[row["package"]], tests[row["package"]]) for row in data["bugs"])


def _bug(row: dict[str, Any], package: Package, tests: tuple[str, ...]) -> Bug:
    plain = {name: row[name] for name in ("id", "file", "function", "output", "lines")}
    failing = tuple(tests[number] for number in row["fails"])
    return Bug(package=package, mutation=Mutation(**row["mutation"]), fail_to_pass=failing, tests=tests, **plain)


def package_bugs(*, timeout: float = TIMEOUT, bugs: Collection[Bug] | None = None) -> Suite:
    """Return a task for each bug (default: the recorded ones); the artifact is the git diff.

    A model is told of one failing test and its output, and may run the tests.  Resolved when all tests pass that passed
    before the bug was put in, `timeout` seconds for one run.  A package is fetched when its first checkout is opened
    (`PackageMissing` where that cannot be).
    """
    tasks = tuple(_task(bug, timeout) for bug in (recorded() if bugs is None else bugs))
    return Suite("package_bugs", tasks, "mend one slip in a real package, in a git checkout with its tests", LICENCE)


def checkout(bug: Bug) -> Workspace:
    """A package with a bug in it.  Its only commit has the bug already."""
    return Workspace(bug.files())


def _offered(bug: Bug, timeout: float) -> Workspace:
    """A checkout whose tests are a tool of the model's."""
    space = checkout(bug)
    return space.offer(tests_tool(space, timeout=timeout))


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
        protected=bug.package.protected,
        timeout=timeout,
    ).score()


def _task(bug: Bug, timeout: float) -> Task:
    fails = f"A test of this repository ({bug.package.name}) fails:\n\n{bug.fail_to_pass[0]}"
    return Task(
        id=bug.id,
        question=f"{fails}\n\n{bug.output}\n\nFind the bug in the source code and fix it. Leave the tests as they are.",
        score=partial(score, bug, timeout),
        expected=f"{bug.file}:{bug.mutation.line}: {bug.mutation.before}",
        workspace=partial(_offered, bug, timeout),
        needs_repl=False,
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
