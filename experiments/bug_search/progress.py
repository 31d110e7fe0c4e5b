"""What a search has come to so far, kept in one file for each package, so that it goes on after an end at any point."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from experiments.bug_search.baseline import Baseline
from experiments.bug_search.search import Found
from rlm_loop.tasks.mutation import Mutation
from rlm_loop.tasks.package_bugs.sdists import Package


@dataclass
class Progress:
    """`tried` are the mutants and what came of them, `found` those that some tests catch, `confirmed` those of them
    that were run with all tests of the package."""

    package: Package
    baseline: Baseline | None = None
    tried: dict[str, str] = field(default_factory=dict[str, str])
    found: list[Found] = field(default_factory=list[Found])
    confirmed: list[Found] = field(default_factory=list[Found])

    def save(self, folder: Path) -> None:
        """Write it in one step: an end in the middle leaves what was there."""
        folder.mkdir(parents=True, exist_ok=True)
        known = self.baseline
        data = {
            "sha256": self.package.sha256,
            "baseline": known
            and {
                "tests": known.tests,
                "reached": [[file, name, list(tests)] for (file, name), tests in known.reached.items()],
                "seconds": known.seconds,
            },
            "tried": self.tried,
            "found": [asdict(bug) for bug in self.found],
            "confirmed": [asdict(bug) for bug in self.confirmed],
        }
        target = _file(folder, self.package)
        fresh = target.with_suffix(f".{os.getpid()}.new")
        fresh.write_text(json.dumps(data), "utf-8")
        os.replace(fresh, target)


def load(folder: Path, package: Package) -> Progress:
    """What is known of a package; nothing, where there is no file or it is of another distribution."""
    try:
        data = json.loads(_file(folder, package).read_text("utf-8"))
    except (OSError, ValueError):
        return Progress(package)
    if data["sha256"] != package.sha256:
        return Progress(package)
    told = data["baseline"]
    known = told and Baseline(
        tuple(told["tests"]),
        {(file, name): tuple(tests) for file, name, tests in told["reached"]},
        told["seconds"],
    )
    return Progress(
        package, known, data["tried"], [_found(r) for r in data["found"]], [_found(r) for r in data["confirmed"]]
    )


def _file(folder: Path, package: Package) -> Path:
    return folder / f"{package.name}.json"


def _found(row: dict[str, Any]) -> Found:
    mutation, failing = Mutation(**row["mutation"]), tuple(row["fail_to_pass"])
    return Found(row["file"], row["function"], mutation, failing, row["output"], row["purpose"])
