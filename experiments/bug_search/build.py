"""Make the manifest: search each package for bugs, confirm each with all its tests, and write them down."""

from __future__ import annotations

import platform
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from experiments.bug_search.baseline import Baseline, BaselineError, baseline, run_suite, write_files
from experiments.bug_search.progress import Progress, load
from experiments.bug_search.search import Found, judged, search
from rlm_loop.tasks.package_bugs.bugs import Bug, Manifest, mutated
from rlm_loop.tasks.package_bugs.sdists import Package, PackageMissing, source_files

Tell = Callable[[str], None]


def build(
    packages: Iterable[Package], wanted: int, state: Path, *, seed: int = 0, jobs: int = 1, tell: Tell
) -> Manifest:
    """Up to `wanted` bugs of each package, `jobs` packages at a time.

    `state` is a folder that keeps what was found, so that a second call goes on where the first ended; `tell` is
    given a line for each mutant that was tried.  A package whose tests do not run here is told and left out.
    """

    def one(package: Package) -> list[Bug]:
        progress = load(state, package)
        try:
            files = source_files(package)
            _search(progress, files, wanted, state, seed, tell)
        except (BaselineError, PackageMissing) as error:
            tell(f"left out: {error}")
        else:
            return list(_bugs(progress, files, wanted))
        return []

    with ThreadPoolExecutor(jobs) as pool:
        bugs = [bug for found in pool.map(one, packages) for bug in found]
    return Manifest(tuple(bugs), {"python": platform.python_version(), "pytest": version("pytest")})


def _search(progress: Progress, files: Mapping[str, bytes], wanted: int, state: Path, seed: int, tell: Tell) -> None:
    package = progress.package
    if progress.baseline is None:
        progress.baseline = baseline(package, files)
        progress.save(state)
        tell(f"{package.name}: {len(progress.baseline.tests)} tests in {progress.baseline.seconds:.1f} s")
    known = progress.baseline

    def on_try(key: str, why: str, bug: Found | None) -> None:
        progress.tried[key] = why
        if bug is not None:
            progress.found.append(bug)
        progress.save(state)
        tell(f"{package.name}: {len(progress.found)} of {wanted}: {key[:100]}: {why}")

    while True:
        search(package, files, known, wanted, seed=seed, tried=progress.tried, found=progress.found, on_try=on_try)
        waiting = [bug for bug in progress.found if bug not in progress.confirmed]
        for bug in waiting:
            place = progress.found.index(bug)
            if (sure := confirmed(package, files, known, bug)) is None:
                progress.found.pop(place)
                tell(f"{package.name}: not confirmed: {bug.file}:{bug.mutation.line}")
            else:
                progress.found[place] = sure
                progress.confirmed.append(sure)
            progress.save(state)
        if not waiting:
            return


def confirmed(package: Package, files: Mapping[str, bytes], known: Baseline, bug: Found) -> Found | None:
    """The bug with what all tests of the package say; `None` where two runs of them disagree, or the first run did.

    The runs have different hash seeds: a bug that shows by chance, or by the order of the tests, is none.
    """
    seen: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory(prefix="rlm-confirm-") as folder:
        root = Path(folder, "package")
        write_files(mutated(files, bug.file, bug.mutation), root)
        for seed in ("3", "4"):
            why, failing = judged(run_suite(root, package.tests, {"PYTHONHASHSEED": seed}), known, known.tests)
            if why or not set(bug.fail_to_pass) <= set(failing) or failing not in (seen or [failing]):
                return None
            seen.append(failing)
    more = tuple(name for name in seen[0] if name not in bug.fail_to_pass)
    return replace(bug, fail_to_pass=(*bug.fail_to_pass, *more))


def _bugs(progress: Progress, files: Mapping[str, bytes], wanted: int) -> Iterator[Bug]:
    known = progress.baseline
    for number, bug in enumerate(progress.confirmed[:wanted], 1):
        yield Bug(
            f"{progress.package.name}-{number:02}",
            progress.package,
            bug.file,
            bug.function,
            bug.mutation,
            bug.fail_to_pass,
            known.tests if known else (),
            bug.output,
            bug.purpose,
            files[bug.file].count(b"\n") + 1,
        )


def table(manifest: Manifest) -> str:
    """Counts by package and by kind, in Markdown."""
    packages: dict[str, list[Bug]] = {}
    for bug in manifest.bugs:
        packages.setdefault(bug.package.name, []).append(bug)
    lines = ["| package | licence | files | tests | bugs |", "| --- | --- | ---: | ---: | ---: |"]
    for bugs in packages.values():
        package = bugs[0].package
        files = len({bug.file for bug in bugs})
        name = f"{package.name} {package.version}"
        lines.append(f"| {name} | {package.licence} | {files} | {len(bugs[0].tests)} | {len(bugs)} |")
    kinds = Counter(bug.mutation.kind for bug in manifest.bugs)
    lines += ["", "| kind | bugs |", "| --- | ---: |", *(f"| {kind} | {n} |" for kind, n in kinds.most_common())]
    return "\n".join(lines)
