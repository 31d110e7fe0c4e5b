"""Make and check the bugs of the suites `package_bugs` and `humaneval-repair`; fetch the packages.

python experiments/bug_search fetch | build | verify | humaneval
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

if __name__ == "__main__":  # started by its folder, which Python then searches instead of the one that holds it
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from experiments.bug_search.build import build, table
from experiments.bug_search.humaneval import find_bug, write_recorded
from experiments.bug_search.manifest import write_manifest
from experiments.bug_search.verify import sample, verify
from rlm_loop.tasks.humaneval import read_problems
from rlm_loop.tasks.package_bugs.bugs import recorded, recorded_path
from rlm_loop.tasks.package_bugs.sdists import PACKAGES, Package, PackageMissing, pull, sdist_folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 0 where all went well."""
    parser = argparse.ArgumentParser(prog="python experiments/bug_search", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name, what in (
        ("fetch", "fetch the packages' source distributions with pip"),
        ("build", "search for bugs and write the manifest; goes on where it was ended"),
        ("verify", "run the tests with each recorded bug and without it"),
        ("humaneval", "search for a slip in each solution of HumanEval and write them to a file"),
    ):
        command = commands.add_parser(name, help=what)
        if name == "humaneval":
            command.add_argument("--to", default=str(files("rlm_loop.tasks") / "data" / "humaneval_mutations.json"))
            continue
        command.add_argument("--packages", default="", help="names, separated by commas (default: all)")
        if name == "build":
            command.add_argument("--each", type=int, default=12, help="bugs of one package (default: %(default)s)")
            command.add_argument("--seed", type=int, default=0)
            command.add_argument("--jobs", type=int, default=1, help="packages at a time (default: %(default)s)")
            command.add_argument("--state", type=Path, default=sdist_folder().with_name("package_bugs"))
            command.add_argument("--to", default=recorded_path(), help="the file to write")
        if name == "verify":
            command.add_argument("--sample", type=int, default=None, help="how many bugs, evenly spread (default: all)")
    given = parser.parse_args(arguments)
    try:
        return _COMMANDS[given.command](given)
    except (PackageMissing, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _chosen(given: argparse.Namespace) -> list[Package]:
    wanted = [name for name in given.packages.split(",") if name]
    known = [package.name for package in PACKAGES]
    if unknown := [name for name in wanted if name not in known]:
        raise ValueError(f"there is no package {', '.join(unknown)}; there are {', '.join(known)}")
    return [package for package in PACKAGES if not wanted or package.name in wanted]


def _fetch(given: argparse.Namespace) -> int:
    for package in _chosen(given):
        print(f"{package.requirement}: {pull(package)}", flush=True)
    return 0


def _build(given: argparse.Namespace) -> int:
    made = build(
        _chosen(given),
        given.each,
        given.state,
        seed=given.seed,
        jobs=given.jobs,
        tell=lambda line: print(line, file=sys.stderr, flush=True),
    )
    write_manifest(given.to, made)
    print(table(made))
    print(f"\n{len(made.bugs)} bugs written to {given.to}")
    return 0


def _verify(given: argparse.Namespace) -> int:
    names = {package.name for package in _chosen(given)}
    bugs = sample([bug for bug in recorded().bugs if bug.package.name in names], given.sample)
    bad = 0
    for number, (bug, problem) in enumerate(verify(bugs), 1):
        bad += bool(problem)
        print(f"{number}/{len(bugs)} {bug.id}: {problem or 'ok'}", flush=True)
    print(f"{len(bugs) - bad} of {len(bugs)} bugs are as recorded, and resolved by taking them back")
    return 1 if bad else 0


def _humaneval(given: argparse.Namespace) -> int:
    found = {problem.task_id: find_bug(problem, 0) for problem in read_problems()}
    for name in [name for name, bug in found.items() if bug is None]:
        print(f"{name}: no mutation makes its tests fail")
    write_recorded(given.to, [(name, bug) for name, bug in found.items() if bug is not None], 0)
    return 0


_COMMANDS = {"fetch": _fetch, "build": _build, "verify": _verify, "humaneval": _humaneval}

if __name__ == "__main__":
    sys.exit(main())
