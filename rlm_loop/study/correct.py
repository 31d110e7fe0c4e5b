"""Scoring a study's recorded episodes again, after a truth or a scorer of its tasks was corrected."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlm_loop.agents.past_run import outcome_of
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.identity import mark_of
from rlm_loop.study.run.episode import scored
from rlm_loop.study.run.scheduler import utc_now
from rlm_loop.study.store.folder import Store
from rlm_loop.study.store.reading import read_lock
from rlm_loop.study.store.rows import Row
from rlm_loop.study.store.verify import traces_of
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.base import Task
from rlm_loop.traces.reader import read

_SCORE = ("resolved", "value", "score_reason")


def correct(name: str, tasks: Mapping[tuple[str, str], Task], folder: str | Path) -> list[Row]:
    """Score the finished episodes of tasks whose truth or scorer changed, and return their new rows.

    No model is called.  A new row has the old score beside it (`scored_before`, oldest first), and `study.json` notes
    the correction, its time, and how many rows changed.  A call that was stopped goes on.
    Raises `StudyError` where the folder holds no such study or a scorer fails, and `TraceError` for a damaged trace.
    """
    lock = read_lock(folder)
    if lock is None or lock["name"] != name or "scorers" not in lock:
        raise StudyError(f"{folder} holds no study {name!r} whose truths and scorers were recorded")
    changed = {
        (suite, task.id): list(task.judged_by)
        for (suite, _), task in tasks.items()
        if task.id in lock["truths"].get(suite, {})
        and [lock["truths"][suite][task.id], lock["scorers"][suite][task.id]] != list(task.judged_by)
    }
    again: list[Row] = []
    with Store(folder, name) as store:
        for row, path in traces_of(folder):
            which = (row["suite"], row["task"])
            if which not in changed or row.get("judged_by") == changed[which]:
                continue
            found, fault = scored(tasks[which], Attempt.of(outcome_of(read(path, run=row.get("trace_run") or None))))
            if fault is not None:
                raise StudyError(f"the scorer of {which[0]}/{which[1]} failed: {fault}") from fault
            before = [*row.get("scored_before", ()), {field: row.get(field) for field in _SCORE}]
            new = {**row, **found, "scored_before": before, "judged_by": changed[which], "rescored": True}
            store.append(new)
            again.append(new)
        for (suite, task), (truth, scorer) in changed.items():
            lock["truths"][suite][task], lock["scorers"][suite][task] = truth, scorer
        if changed:
            flipped = sum(row["resolved"] != row["scored_before"][-1]["resolved"] for row in again)
            note: dict[str, Any] = {"when": utc_now(), "rows": len(again), "changed": flipped}
            note["tasks"] = [f"{suite}/{task}" for suite, task in changed]
            lock["corrections"] = [*lock.get("corrections", ()), note]
            store.write_lock({**lock, "identity": mark_of(lock)})
    return again
