"""A bug: one mutation of one function of a package, and what the package's tests say about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from rlm_loop.tasks.mutate import Mutation, apply
from rlm_loop.tasks.package_bugs.packages import Package
from rlm_loop.tasks.package_bugs.sdists import source_files


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
