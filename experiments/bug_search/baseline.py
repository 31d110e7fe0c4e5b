"""What a package's tests say before anything is changed: which pass each time, and which functions each calls."""

from __future__ import annotations

import ast
import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from experiments.bug_search.finder import functions
from rlm_loop.repl.settings import Limits
from rlm_loop.tasks.package_bugs.sdists import Package
from rlm_loop.workspace.testing import TestRun, run_tests

_CPU = Limits(cpu_seconds=30, file_size=1 << 28)  # of one run of a suite; a mutant that loops is stopped by this
_WALL = 900.0


class BaselineError(Exception):
    """A package's own tests do not run as they should on this machine."""


@dataclass(frozen=True)
class Baseline:
    """`tests` pass in each of two runs; `reached` maps (file, function) to those of them that call the function."""

    tests: tuple[str, ...]
    reached: Mapping[tuple[str, str], tuple[str, ...]]
    seconds: float


def code_files(files: Mapping[str, bytes], package: Package) -> list[str]:
    """The Python files that bugs may be put into."""
    return sorted(
        name for name in files if name.endswith(".py") and below(name, package.code) and not below(name, package.tests)
    )


def below(name: str, places: tuple[str, ...]) -> bool:
    """Whether a file is one of these files or lies in one of these folders."""
    return any(name == place or name.startswith(place.rstrip("/") + "/") for place in places)


def write_files(files: Mapping[str, bytes], root: Path) -> None:
    """Write a distribution's files below a folder; their names have been checked when they were read."""
    for name, content in files.items():
        target = root / PurePosixPath(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def run_suite(root: Path, ids: tuple[str, ...], env: Mapping[str, str] | None = None) -> TestRun:
    """Run tests of a package that we picked ourselves: as a plain process, with a limit on its CPU time."""
    return run_tests(root, ids, timeout=_WALL, env=env, place="plain", limits=_CPU)


def baseline(package: Package, files: Mapping[str, bytes]) -> Baseline:
    """Run the tests of a package twice, once with a trace of calls.  Raises `BaselineError` where few pass."""
    with tempfile.TemporaryDirectory(prefix="rlm-baseline-") as folder:
        root = Path(folder, "package")
        write_files(files, root)
        # Hash seeds differ, so that ids which depend on the order of a set are not taken for stable.
        plain = run_suite(root, package.tests, {"PYTHONHASHSEED": "1"})
        calls = Path(folder, "calls.json")
        plugin = {
            "PYTHONHASHSEED": "2",
            "PYTHONPATH": str(Path(__file__).parent),
            "PYTEST_PLUGINS": "call_tracer",
            "RLM_LOOP_CALLS": str(calls),
        }
        traced = run_suite(root, package.tests, plugin)
        if not plain.results or not calls.is_file():
            raise BaselineError(f"{package.name}: {plain.complaint or traced.complaint or 'the tests do not end'}")
        seen: dict[str, list[tuple[str, int]]] = json.loads(calls.read_text("utf-8"))
    passed = [name for name, what in plain.results.items() if what == "passed" == traced.results.get(name)]
    tests = tuple(sorted(name for name in passed if not below(name.partition("::")[0], package.timed)))
    if len(tests) < 2 or len(tests) < 0.8 * len(plain.results):
        bad = next((name for name, what in plain.results.items() if what in ("failed", "error")), "most are skipped")
        raise BaselineError(f"{package.name}: {len(tests)} of {len(plain.results)} tests pass; not: {bad}")
    return Baseline(tests, dict(_reached(package, files, set(tests), seen)), plain.seconds)


def _reached(
    package: Package, files: Mapping[str, bytes], tests: set[str], seen: Mapping[str, list[tuple[str, int]]]
) -> Iterator[tuple[tuple[str, str], tuple[str, ...]]]:
    """The tests of each function that is called in tests, and not while they are collected."""
    for file in code_files(files, package):
        for name, node in functions(ast.parse(files[file])):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            lines = range(first, (node.end_lineno or first) + 1)
            callers = {test for test, calls in seen.items() for where, line in calls if where == file and line in lines}
            if callers and "" not in callers and (known := tuple(sorted(callers & tests))):
                yield (file, name), known
