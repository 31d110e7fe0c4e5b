"""Scoring recorded runs again, by each contract that their task knows, without a model call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rlm_loop.agents.past_run import outcome_of
from rlm_loop.study.errors import StudyError
from rlm_loop.study.store.rows import Row
from rlm_loop.study.store.verify import traces_of
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.base import Suite
from rlm_loop.tasks.registry import get_suite
from rlm_loop.traces.reader import read


def rescore(folder: str | Path, suite: Callable[[str], Suite] = get_suite) -> Iterator[Row]:
    """Each finished row of a study with `by_submission`: whether the run counts as resolved by each contract.

    `recorded` is what the row says.  `suite` finds a suite by its name; `resolved`, `value` and `score_reason` are by
    the task's own contract.  Only scorers run, isolated as the run's cells were.  Raises `StudyError` for a task that
    its suite no longer has, or a suite that `suite` does not know, `TraceError` where a trace is missing or damaged,
    and what a scorer raises.
    """
    suites: dict[str, dict[str, Any]] = {}
    for row, path in traces_of(folder):
        name = row["suite"]
        if name not in suites:
            try:
                suites[name] = {task.id: task for task in suite(name)}
            except ValueError as error:
                raise StudyError(f"{error}; of a suite of your own: rescore(folder, suite=lambda name: ...)") from error
        task = suites[name].get(row["task"])
        if task is None:
            raise StudyError(f"the suite {name} has no task {row['task']} today: score it with the version that ran it")
        attempt = Attempt.of(outcome_of(read(path, run=row.get("trace_run") or None)))
        scores = {s: task.judge(attempt, s) for s in task.submissions}
        first = scores[task.submissions[0]]
        yield {
            **row,
            "recorded": row["resolved"],
            "resolved": first.resolved,
            "value": first.value,
            "score_reason": first.reason,
            "by_submission": {name: score.resolved for name, score in scores.items()},
        }
