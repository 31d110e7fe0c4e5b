"""The recorded bugs: one JSON file, so that loading the suite runs nothing and fetches nothing.

A package's tests are a compressed list (zlib, base 85); a bug names those that it breaks by their places in it, and
all others pass with it.
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from rlm_loop.tasks.mutate import Mutation
from rlm_loop.tasks.package_bugs.bugs import Bug
from rlm_loop.tasks.package_bugs.packages import PACKAGES, Package

_RECORDED = "package_bugs.json"


@dataclass(frozen=True)
class Manifest:
    """`bugs` in the suite's order; `made_with` are the versions that the tests ran with."""

    bugs: tuple[Bug, ...]
    made_with: Mapping[str, str]


@cache
def recorded() -> Manifest:
    """The bugs that come with this package."""
    return read_manifest((files("rlm_loop.tasks") / "data" / _RECORDED).read_text("utf-8"))


def recorded_path() -> str:
    """Where `recorded` reads."""
    return str(files("rlm_loop.tasks") / "data" / _RECORDED)


def read_manifest(text: str, packages: Iterable[Package] = PACKAGES) -> Manifest:
    """Raises `ValueError` where the file and the table of packages do not fit together."""
    data = json.loads(text)
    known = {package.name: package for package in packages}
    tests: dict[str, tuple[str, ...]] = {}
    for name, row in data["packages"].items():
        package = known.get(name)
        if package is None or package.sha256 != row["sha256"]:
            raise ValueError(
                f"the recorded bugs are of another {name}: run `python -m rlm_loop.tasks.package_bugs build`"
            )
        tests[name] = unpacked(row["tests"])
    return Manifest(
        tuple(_bug(row, known[row["package"]], tests[row["package"]]) for row in data["bugs"]), data["made_with"]
    )


def write_manifest(path: str | os.PathLike[str], manifest: Manifest) -> None:
    """One line for each package and each bug, so that a changed file can be read as a diff."""
    tests = {bug.package.name: (bug.package, bug.tests) for bug in manifest.bugs}
    packages = [
        f"  {json.dumps(name)}: "
        + json.dumps({"version": package.version, "sha256": package.sha256, "tests": packed(names)})
        for name, (package, names) in sorted(tests.items())
    ]
    rows = [f"  {json.dumps(_row(bug), ensure_ascii=False)}" for bug in manifest.bugs]
    with open(path, "w", encoding="utf-8") as file:
        file.write('{\n "made_with": ' + json.dumps(dict(manifest.made_with)) + ',\n "packages": {\n')
        file.write(",\n".join(packages) + '\n },\n "bugs": [\n' + ",\n".join(rows) + "\n ]\n}\n")


def packed(names: Iterable[str]) -> str:
    """Test ids as compressed text.  Raises `ValueError` for an id with a line break."""
    known = list(names)
    if any("\n" in name for name in known):
        raise ValueError("a test id has a line break")
    return base64.b85encode(zlib.compress("\n".join(known).encode("utf-8"), 9)).decode("ascii")


def unpacked(text: str) -> tuple[str, ...]:
    """The inverse of `packed`."""
    joined = zlib.decompress(base64.b85decode(text)).decode("utf-8")
    return tuple(joined.split("\n")) if joined else ()


def _row(bug: Bug) -> dict[str, Any]:
    place = {name: number for number, name in enumerate(bug.tests)}
    return {
        "id": bug.id,
        "package": bug.package.name,
        "file": bug.file,
        "function": bug.function,
        "mutation": asdict(bug.mutation),
        "fails": [place[name] for name in bug.fail_to_pass],
        "lines": bug.lines,
        "purpose": bug.purpose,
        "output": bug.output,
    }


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
