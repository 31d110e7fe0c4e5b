"""Why the episodes of a study over long contexts failed, by what of the context was looked at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rlm_loop.study.coverage import CoverageError, coverage_of, diagnose
from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results
from rlm_loop.study.store.rows import finished
from rlm_loop.tasks.base import Suite, Task


def diagnose_episodes(results: Results, suites: Iterable[Suite]) -> list[dict[str, Any]]:
    """One row for each finished episode of a task that names the places its answer depends on (`Task.needles`).

    A row holds `arm`, `suite`, `task`, `family`, `size` (characters), `resolved` and the facts of `coverage.Diagnosis`
    (`reason`, `needles`, `needles_seen`, `context_seen`, `answer_by` ...).  `suites` are those of the study: their
    contexts are made anew and compared with the hash in each trace.  Raises `StudyError` where no task names places, or
    where a context is another one than the run's (these suites depend on the version of Python).
    """
    tasks: dict[tuple[str, str], Task] = {(s.name, t.id): t for s in suites for t in s}
    made: dict[tuple[str, str], Any] = {}  # of one task at a time: a context may be large
    found: list[dict[str, Any]] = []
    for row in sorted(filter(finished, results.rows), key=lambda r: (r["suite"], r["task"])):
        key = (row["suite"], row["task"])
        task = tasks.get(key)
        needles = () if task is None else task.ranges()
        if task is None or not needles:
            continue
        if key not in made:
            made = {key: task.material()}
        record = results.trace(row)
        try:
            why = diagnose(record, coverage_of(made[key], record), needles, resolved=bool(row["resolved"]))
        except CoverageError as error:
            raise StudyError(f"{row['task']} of {row['arm']}: {error}") from error
        facts = row.get("facts", {})
        named = {name: row[name] for name in ("model", "arm", "suite", "task", "seed")}
        size = {name: facts.get(name) for name in ("family", "size")}
        found.append({**named, **size, "resolved": bool(row["resolved"]), **why.row()})
    if not found:
        raise StudyError("no finished task of this study names the places that its answer depends on")
    return found
