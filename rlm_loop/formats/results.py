"""Results of anybody's as ours: what several files and folders hold, put together, and what can be paired.

>>> load_results("logs/before.eval", "logs/after.eval").compare()   # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from rlm_loop.formats.readers import Options, Source, sources_at
from rlm_loop.study.compare.columns import UNDECLARED, models_told_apart
from rlm_loop.study.compare.pair_keys import complete_and_incomplete
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results
from rlm_loop.study.store.rows import Row


@dataclass(frozen=True)
class Loaded:
    """Results that can be compared, and what there is to know of how they were read."""

    results: Results
    notes: Sequence[str]


def load_results(
    *paths: str | Path,
    score: str | None = None,
    threshold: float | None = None,
    columns: Mapping[str, str] | None = None,
) -> Results:
    """The results of files and folders, ready to be compared: `load_results("a.csv", "b.csv").compare()`.

    A path is a table (CSV, JSON Lines, JSON or Parquet with a row for each task, arm and seed), a log of Inspect
    (`.eval` or `.json`), a `samples_*.jsonl` of lm-evaluation-harness, a folder of logs or samples, a report of
    SWE-bench, a job folder of Harbor, or a study of ours; `NAME=PATH` gives the arm of a path a name.  `score` chooses
    one of several scores, `threshold` the value from which a task counts as resolved, `columns` names columns of a
    table (`{"task": "my_id"}`).  Of results so read nothing is declared, and so nothing is tested.  Raises
    `StudyError`, in one line that says what and where, for what cannot be read, and where no task was tried by all
    arms.
    """
    return load_sources(*paths, score=score, threshold=threshold, columns=columns).results


def load_sources(
    *paths: str | Path,
    score: str | None = None,
    threshold: float | None = None,
    columns: Mapping[str, str] | None = None,
) -> Loaded:
    """As `load_results`, with the notes."""
    options = Options(score, threshold, columns or {})
    named = [_named(path) for path in paths]
    if not named:
        raise StudyError("name a file or a folder of results")
    read = [sources_at(path, options) for _, path in named]
    labels = _labels(named, read)
    rows: list[Row] = []
    sources: list[Source] = []
    for of_path, label in zip(read, labels, strict=True):
        for source in of_path:
            rows += [{**r, "arm": label[r["arm"]], "source": len(sources)} for r in source.rows]
            sources.append(source)
    rows = _with_suites(models_told_apart(rows))
    notes = [*dict.fromkeys(note for source in sources for note in source.notes), *_other_tasks(sources)]
    _refuse_twice(rows, sources)
    _refuse_unpaired(rows)
    name = " and ".join(str(path) for _, path in named)
    return Loaded(Results(rows, {"name": name, **UNDECLARED}), notes)


def _named(path: str | Path) -> tuple[str, Path]:
    """The name that was given to a path, and the path; `NAME=PATH` is a path of that name where there is none."""
    name, equals, rest = str(path).partition("=")
    if equals and name and "/" not in name and not Path(path).exists():
        return name, Path(rest)
    return "", Path(path)


def _labels(named: Sequence[tuple[str, Path]], read: Sequence[Sequence[Source]]) -> list[dict[str, str]]:
    """For each path what its arms are called: as the files say, where that tells them apart; else by name or path."""
    own = [list(dict.fromkeys(row["arm"] for source in of for row in source.rows)) for of in read]
    for (name, path), arms in zip(named, own, strict=True):
        if name and len(arms) > 1:
            raise StudyError(f"{name}={path}: the file has {len(arms)} arms ({', '.join(arms)}), so it takes no name")
    shared = {arm for a, b in combinations(own, 2) for arm in {*a} & {*b}}
    apart = _short([path for _, path in named])
    labels: list[dict[str, str]] = []
    for (name, _), arms, short in zip(named, own, apart, strict=True):
        label = {arm: f"{short}/{arm}" if arm in shared and len(arms) > 1 else arm for arm in arms}
        if len(arms) == 1 and (name or not arms[0] or arms[0] in shared):
            label = {arms[0]: name or short}
        labels.append(label)
    return labels


def _short(paths: Sequence[Path]) -> list[str]:
    """The part of each path that tells it from the others: the last one that does, without its ending."""
    parts = [[*path.absolute().parts[:-1], path.name.split(".")[0] or path.name] for path in paths]
    for at in range(1, max(map(len, parts)) + 1):
        found = [of[-at] if len(of) >= at else "" for of in parts]
        if len(set(found)) == len(found):
            return found
    return [str(path) for path in paths]


def _with_suites(rows: Sequence[Row]) -> list[Row]:
    """Rows of an arm that names no suites take those of the arms that do, where an id is in one suite only."""
    suites: dict[str, set[str]] = {}
    for row in rows:
        if row["suite"]:
            suites.setdefault(row["task"], set()).add(row["suite"])
    only = {task: next(iter(of)) for task, of in suites.items() if len(of) == 1}
    return [{**r, "suite": r["suite"] or only.get(r["task"], "")} for r in rows]


def _refuse_twice(rows: Sequence[Row], sources: Sequence[Source]) -> None:
    seen: dict[tuple[object, ...], int] = {}
    for row in rows:
        key = tuple(row[k] for k in ("arm", "model", "suite", "task", "seed"))
        if key in seen:
            first, second = sources[seen[key]].path, sources[row["source"]].path
            raise StudyError(
                f"task {row['task']!r} (seed {row['seed']}) of arm {row['arm']!r} is in {first} and in {second}; give "
                "one of them, or both as arms (NAME=PATH)"
            )
        seen[key] = row["source"]


def _refuse_unpaired(rows: Sequence[Row]) -> None:
    arms = list(dict.fromkeys(r["arm"] for r in rows))
    if len(arms) < 2:
        raise StudyError(f"there is only the arm {arms[0]!r}; a comparison needs two: give a second file, or name them")
    if complete_and_incomplete(rows)[0]:
        return
    first = {arm: next(r for r in rows if r["arm"] == arm) for arm in arms[:3]}
    shown = "; ".join(f"{arm} has {(r['suite'], r['task'], r['seed'])}" for arm, r in first.items())
    raise StudyError(f"no suite, task and seed was tried by all arms: {shown}")


def _other_tasks(sources: Sequence[Source]) -> list[str]:
    """A note where tasks of one name are not the same in two files."""
    known: dict[tuple[str, str], str] = {}
    other: dict[tuple[str, str], None] = {}
    for source in sources:
        for task, mark in source.fingerprints.items():
            if known.setdefault(task, mark) != mark:
                other[task] = None
    if not other:
        return []
    suite, task = next(iter(other))
    return [
        f"{len(other)} tasks have one id but not one text in all files (first: {task} of {suite}): are they the same?"
    ]
