"""Scoring recorded runs again, without a model call: by each contract of their tasks, or by a corrected scorer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.identity import mark_of
from rlm_loop.study.run.episode import recorded_attempt, scored, utc_now
from rlm_loop.study.store.archive import finished_rows
from rlm_loop.study.store.folder import Store
from rlm_loop.study.store.reading import read_lock
from rlm_loop.study.store.rows import Row
from rlm_loop.tasks.base import Suite, Task
from rlm_loop.tasks.registry import get_suite

_SCORE = ("resolved", "value", "score_reason")


def rescore(folder: str | Path, suite: Callable[[str], Suite] = get_suite) -> Iterator[Row]:
    """Each finished row of a study with `by_submission`: whether the run counts as resolved by each contract.

    `recorded` is what the row says.  `suite` finds a suite by its name; `resolved`, `value` and `score_reason` are by
    the task's own contract.  Only scorers run, isolated as the run's cells were.  Raises `StudyError` for a task that
    its suite no longer has, or a suite that `suite` does not know, `TraceError` where a trace is missing or damaged,
    and what a scorer raises.
    """
    suites: dict[str, dict[str, Task]] = {}
    for row in finished_rows(folder):
        name = row["suite"]
        try:
            if name not in suites:
                suites[name] = {task.id: task for task in suite(name)}
        except ValueError as error:
            raise StudyError(f"{error}; of a suite of your own: rescore(folder, suite=lambda name: ...)") from error
        task = suites[name].get(row["task"])
        if task is None:
            raise StudyError(f"the suite {name} has no task {row['task']} today: score it with the version that ran it")
        attempt = recorded_attempt(folder, row)
        scores = {s: task.judge(attempt, s) for s in task.submissions}
        first = scores[task.submissions[0]]
        now = {"resolved": first.resolved, "value": first.value, "score_reason": first.reason}
        by_submission = {name: score.resolved for name, score in scores.items()}
        yield {**row, "recorded": row["resolved"], **now, "by_submission": by_submission}


def correct(name: str, tasks: Mapping[tuple[str, str], Task], folder: str | Path) -> None:
    """Score the finished episodes of tasks whose truth or scorer changed, and write their new rows.

    A new row has the old score beside it (`scored_before`, oldest first), and `study.json` notes the correction, its
    time, and how many rows changed.  A call that was stopped goes on.
    Raises `StudyError` where the folder holds no such study or a scorer fails, and `TraceError` for a damaged trace.
    """
    lock = read_lock(folder)
    if lock is None or lock["name"] != name or "scorers" not in lock:
        raise StudyError(f"{folder} holds no study {name!r} whose truths and scorers were recorded")
    truths, scorers = lock["truths"], lock["scorers"]
    changed = {
        (suite, task.id): list(task.judged_by)
        for (suite, _), task in tasks.items()
        if task.id in truths.get(suite, {}) and [truths[suite][task.id], scorers[suite][task.id]] != [*task.judged_by]
    }
    again: list[Row] = []
    with Store(folder, name) as store:
        for row in finished_rows(folder):
            which = (row["suite"], row["task"])
            if which not in changed or row.get("judged_by") == changed[which]:
                continue
            found, fault = scored(tasks[which], recorded_attempt(folder, row))
            if fault is not None:
                raise StudyError(f"the scorer of {which[0]}/{which[1]} failed: {fault}") from fault
            before = [*row.get("scored_before", ()), {field: row.get(field) for field in _SCORE}]
            again.append({**row, **found, "scored_before": before, "judged_by": changed[which], "rescored": True})
            store.append(again[-1])
        if changed:
            for (suite, task), marks in changed.items():
                truths[suite][task], scorers[suite][task] = marks
            flipped = sum(row["resolved"] != row["scored_before"][-1]["resolved"] for row in again)
            note: dict[str, Any] = {"when": utc_now(), "rows": len(again), "changed": flipped}
            note["tasks"] = [f"{suite}/{task}" for suite, task in changed]
            lock["corrections"] = [*lock.get("corrections", ()), note]
            store.write_lock({**lock, "identity": mark_of(lock)})
