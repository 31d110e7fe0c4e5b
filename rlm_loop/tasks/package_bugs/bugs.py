"""A bug: one mutation of one function of a package, and what the package's tests say about it.

The recorded bugs are one JSON file, so that loading the suite runs nothing and fetches nothing.  It has a package's
tests as a compressed list (zlib, base 85); a bug names those that it breaks by index, and all others pass with it.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from rlm_loop.tasks.mutation import Mutation, apply
from rlm_loop.tasks.package_bugs.sdists import PACKAGES, Package, source_files

_RECORDED = "package_bugs.json"


@dataclass(frozen=True)
class Bug:
    """`function` (dotted for a method) of `file` has the mutation.

    `fail_to_pass` are the tests that fail with it and pass without it; `tests` are all tests of the package that
    pass without it each time.  `output` is what the first failing test says, `purpose` the first sentence of the
    function's docstring, `lines` the length of the file.
    """

    id: str
    package: Package
    file: str
    function: str
    mutation: Mutation
    fail_to_pass: tuple[str, ...]
    tests: tuple[str, ...]
    output: str
    purpose: str
    lines: int

    @cached_property
    def pass_to_pass(self) -> tuple[str, ...]:
        """The tests that pass with the bug and without it."""
        failing = set(self.fail_to_pass)
        return tuple(name for name in self.tests if name not in failing)

    def files(self) -> dict[str, bytes]:
        """The package's files with the bug in its place; the text without it is nowhere among them."""
        return mutated(source_files(self.package), self.file, self.mutation)


def mutated(files: Mapping[str, bytes], file: str, mutation: Mutation) -> dict[str, bytes]:
    """The files with one of them mutated.  Python source is read and written as UTF-8, with its line ends."""
    return {**files, file: apply(files[file].decode("utf-8"), mutation).encode("utf-8")}


@dataclass(frozen=True)
class Manifest:
    """`bugs` in the suite's order; `made_with` are the versions that the tests ran with."""

    bugs: tuple[Bug, ...]
    made_with: Mapping[str, str]


@cache
def recorded() -> Manifest:
    """The bugs that come with this package."""
    return read_manifest((files("rlm_loop.tasks") / "data" / _RECORDED).read_text("utf-8"))


def read_manifest(text: str, packages: Iterable[Package] = PACKAGES) -> Manifest:
    """Raises `ValueError` where the file and the table of packages do not fit together."""
    data = json.loads(text)
    known = {package.name: package for package in packages}
    tests: dict[str, tuple[str, ...]] = {}
    for name, row in data["packages"].items():
        package = known.get(name)
        if package is None or package.sha256 != row["sha256"]:
            raise ValueError(f"the recorded bugs are of another {name}: the two files do not belong together")
        tests[name] = unpacked(row["tests"])
    return Manifest(
        tuple(_bug(row, known[row["package"]], tests[row["package"]]) for row in data["bugs"]), data["made_with"]
    )


def unpacked(text: str) -> tuple[str, ...]:
    """Names of tests, one a line, compressed by zlib and written in base 85."""
    joined = zlib.decompress(base64.b85decode(text)).decode("utf-8")
    return tuple(joined.split("\n")) if joined else ()


def _bug(row: Mapping[str, Any], package: Package, tests: tuple[str, ...]) -> Bug:
    return Bug(
        row["id"],
        package,
        row["file"],
        row["function"],
        Mutation(**row["mutation"]),
        tuple(tests[number] for number in row["fails"]),
        tests,
        row["output"],
        row["purpose"],
        row["lines"],
    )
