"""Results of anybody's as ours: what several files and folders hold, put together, and what can be paired.

>>> load_results("logs/before.eval", "logs/after.eval").compare()   # doctest: +SKIP
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlm_loop.formats.readers import Options, sources_at
from rlm_loop.study.compare.columns import UNDECLARED, models_told_apart
from rlm_loop.study.compare.pair_keys import complete_and_incomplete
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results
from rlm_loop.study.store.rows import Row


def load_results(
    *paths: str | Path,
    score: str | None = None,
    threshold: float | None = None,
    columns: Mapping[str, str] | None = None,
) -> Results:
    """The results of files and folders, ready to be compared: `load_results("a.csv", "b.csv").compare()`.

    A path is a table (CSV, JSON Lines or Parquet with a row for each task, arm and seed), a log of Inspect
    (`.eval` or `.json`), a `samples_*.jsonl` of lm-evaluation-harness, a folder of logs or samples, a report of
    SWE-bench, a job folder of Harbor, or a study of ours; `NAME=PATH` gives the arm of a path a name.  `score` chooses
    one of several scores, `threshold` the value from which a task counts as resolved, `columns` names columns of a
    table (`{"task": "my_id"}`).  The results' `notes` say what a reader has to know of how they were read.  Of results
    so read nothing is declared, and so nothing is tested.  Raises `StudyError`, in one line that says what and where,
    for what cannot be read, and where no task was tried by all arms.
    """
    options = Options(score, threshold, columns or {})
    named = [_named(path) for path in paths]
    read = [sources_at(path, options) for _, path in named]
    own = [dict.fromkeys(row["arm"] for source in sources for row in source.rows) for sources in read]
    files_of = Counter(arm for arms in own for arm in arms)
    rows: list[Row] = []
    seen: dict[tuple[object, ...], Path] = {}
    for (name, path), sources, arms, short in zip(named, read, own, _short([path for _, path in named]), strict=True):
        if name and len(arms) > 1:
            raise StudyError(f"{name}={path}: the file has {len(arms)} arms ({', '.join(arms)}), so it takes no name")
        labels = {arm: f"{short}/{arm}" if arm and files_of[arm] > 1 else arm or short for arm in arms}
        for source in sources:
            for row in source.rows:
                rows.append({**row, "arm": name or labels[row["arm"]]})
                arm, _, _, task, seed = key = tuple(rows[-1][k] for k in ("arm", "model", "suite", "task", "seed"))
                if key in seen:
                    where = f"in {seen[key]} and in {source.path}; give one of them, or both as arms (NAME=PATH)"
                    raise StudyError(f"task {task!r} (seed {seed}) of arm {arm!r} is {where}")
                seen[key] = source.path
    rows = models_told_apart(rows)
    _refuse_unpaired(rows)
    notes = tuple(dict.fromkeys(note for sources in read for source in sources for note in source.notes))
    lock = {"name": " and ".join(str(path) for _, path in named), **UNDECLARED}
    return Results(rows, lock, notes=notes)


def _named(path: str | Path) -> tuple[str, Path]:
    """The name that was given to a path, and the path; `NAME=PATH` is a path of that name where there is none."""
    name, equals, rest = str(path).partition("=")
    if equals and name and "/" not in name and not Path(path).exists():
        return name, Path(rest)
    return "", Path(path)


def _short(paths: Sequence[Path]) -> list[str]:
    """The part of each path that tells it from the others: the last one that does, without its ending."""
    parts = [[*path.absolute().parts[:-1], path.name.split(".")[0] or path.name] for path in paths]
    for at in range(1, max(map(len, parts), default=0) + 1):
        found = [of[-at] if len(of) >= at else "" for of in parts]
        if len(set(found)) == len(found):
            return found
    return [str(path) for path in paths]


def _refuse_unpaired(rows: Sequence[Row]) -> None:
    arms = list(dict.fromkeys(r["arm"] for r in rows))
    if len(arms) < 2:
        there = f"there is only the arm {arms[0]!r}" if arms else "there are no results"
        raise StudyError(f"{there}; a comparison needs two: give a second file, or name them")
    if not complete_and_incomplete(rows)[0]:
        first = {row["arm"]: (row["suite"], row["task"], row["seed"]) for row in reversed(rows)}
        shown = "; ".join(f"{arm} has {first[arm]}" for arm in arms[:3])
        raise StudyError(f"no suite, task and seed was tried by all arms: {shown}")
