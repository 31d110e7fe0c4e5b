"""Writes the recorded bugs as the JSON file that `rlm_loop.tasks.package_bugs` reads."""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rlm_loop.tasks.package_bugs.bugs import Bug, Manifest


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
