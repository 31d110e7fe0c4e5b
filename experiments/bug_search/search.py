"""The search for bugs: mutants of a package that some of its tests catch, and most do not."""

from __future__ import annotations

import ast
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from experiments.bug_search.baseline import Baseline, run_suite, write_files
from experiments.bug_search.finder import functions, mutations
from experiments.bug_search.wide_finder import WideFinder
from rlm_loop.tasks.mutation import Mutation
from rlm_loop.tasks.package_bugs.bugs import mutated
from rlm_loop.tasks.package_bugs.sdists import Package
from rlm_loop.workspace.testing import TestRun

_LARGEST_SHARE = 0.3  # of the package's tests that may fail: more is a bug that nobody overlooks
_MOST_FAILING = 40
_TRIES = 3  # mutants of one function
_OUTPUT = 1200  # characters of the failing test's output that are kept
_TOPS = "tmp|var|private|home|root|Users|opt|usr|work|build"  # where folders of a machine begin
_SHORTEST = 3  # lines of a function


@dataclass(frozen=True)
class Found:
    """A mutant that is kept, and what was seen."""

    file: str
    function: str
    mutation: Mutation
    fail_to_pass: tuple[str, ...]
    output: str
    purpose: str


def search(
    package: Package,
    files: Mapping[str, bytes],
    known: Baseline,
    wanted: int,
    *,
    seed: int = 0,
    tried: Mapping[str, str] | None = None,
    found: list[Found] | None = None,
    on_try: Callable[[str, str, Found | None], None] = lambda _key, _why, _found: None,
) -> list[Found]:
    """Up to `wanted` bugs of a package, one in a function, spread over its files and over the kinds of slips.

    `tried` and `found` are what an earlier search came to, which goes on from there; `on_try` is told of each mutant
    its key, what came of it and the bug, if it is one.
    """
    bugs = list(found or ())
    done = dict(tried or {})
    kinds = Counter(bug.mutation.kind for bug in bugs)
    with tempfile.TemporaryDirectory(prefix="rlm-search-") as folder:
        root = Path(folder, "package")
        write_files(files, root)
        for file, function in _order(package, files, known, seed):
            if len(bugs) >= wanted:
                break
            if any((bug.file, bug.function) == (file, function) for bug in bugs):
                continue
            options = mutations(
                files[file].decode("utf-8"), function, f"{seed}:{package.name}:{file}", finder=WideFinder
            )
            place = {option: number for number, option in enumerate(options)}
            for mutation in sorted(options, key=lambda m: (kinds[m.kind], place[m]))[:_TRIES]:
                key = f"{file}:{mutation.line}:{mutation.column}:{mutation.before}>{mutation.after}"
                if key in done:
                    continue
                why, bug = _attempt(package, files, known, root, file, function, mutation)
                on_try(key, why, bug)
                if bug is not None:
                    bugs.append(bug)
                    kinds[mutation.kind] += 1
                    break
    return bugs


def _order(package: Package, files: Mapping[str, bytes], known: Baseline, seed: int) -> Iterator[tuple[str, str]]:
    """The functions that are tested, files taking turns; those that most tests call come last."""
    draw = random.Random(f"{seed}:{package.name}")
    narrow: dict[str, list[str]] = {}
    wide: dict[str, list[str]] = {}
    for (file, function), tests in known.reached.items():
        node = dict(functions(ast.parse(files[file])))[function]
        if (node.end_lineno or 0) - node.body[0].lineno + 1 >= _SHORTEST:
            (narrow if len(tests) <= _most(known) else wide).setdefault(file, []).append(function)
    for by_file in (narrow, wide):
        for names in by_file.values():
            draw.shuffle(names)
        order = sorted(by_file)
        draw.shuffle(order)
        while any(by_file.values()):
            for file in order:
                if by_file[file]:
                    yield file, by_file[file].pop()


def _most(known: Baseline) -> float:
    return min(_MOST_FAILING, max(1, _LARGEST_SHARE * len(known.tests)))


def _attempt(
    package: Package,
    files: Mapping[str, bytes],
    known: Baseline,
    root: Path,
    file: str,
    function: str,
    mutation: Mutation,
) -> tuple[str, Found | None]:
    """Run the tests that reach the function, with the mutation in place."""
    target = root / file
    target.write_bytes(mutated(files, file, mutation)[file])
    try:
        run = run_suite(root, known.reached[file, function])
    finally:
        target.write_bytes(files[file])
    why, failing = judged(run, known, known.reached[file, function])
    if why:
        return why, None
    first = next((name for name in failing if run.messages.get(name)), "")
    if not first:
        return "says nothing", None
    source = files[file].decode("utf-8")
    failing = (first, *(name for name in failing if name != first))
    return "kept", Found(file, function, mutation, failing, tidy(run.messages[first]), purpose(source, function))


def judged(run: TestRun, known: Baseline, expected: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Why a mutant is passed over (empty: it is not), and the tests that it breaks."""
    if run.timed_out or run.cut_short or run.complaint:
        return "does not end" if run.timed_out or "signal" in run.cut_short else "breaks the run", ()
    if any("::" not in name for name in run.results):
        return "breaks the import", ()
    failing = tuple(sorted(name for name in expected if run.results.get(name) != "passed"))
    if not failing:
        return "survives", ()
    if any(run.results.get(name) not in ("failed", "error") for name in failing):
        return "changes which tests there are", ()
    if len(failing) > _most(known):
        return "breaks too much", ()
    return "", failing


def tidy(output: str) -> str:
    """A failure's text without what differs from run to run: folders and addresses."""
    text = re.sub(r"/[^\s'\"]*?/rlm-tests-[^/\s]*/work/", "", output)
    text = re.sub(r"/[^\s'\"]*?/(site-packages|lib/python3\.\d+)/", r"\1/", text)
    text = re.sub(rf"/(?:{_TOPS})/[^\s'\":,]*/", "", text)
    text = re.sub(r"\b0x[0-9a-fA-F]{6,}\b", "0x...", text).strip()
    if len(text) <= _OUTPUT:
        return text
    return text[: _OUTPUT // 3].rstrip() + "\n...\n" + text[-2 * _OUTPUT // 3 :].lstrip()


def purpose(source: str, function: str) -> str:
    """The first sentence of a function's docstring, at most 200 characters."""
    node = dict(functions(ast.parse(source)))[function]
    text = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
    sentence = re.split(r"(?<=[.!?])\s", text)[0]
    return sentence if len(sentence) <= 200 else sentence[:197].rstrip() + "..."
