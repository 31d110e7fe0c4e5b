"""An episode: attempt a task and score the attempt, and score it again where a truth or a scorer was corrected.

A fault of the scorer or the machine leaves an attempt unscored, never "not resolved".  The next run scores it again
from its trace, without a model call.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rlm_loop.agents.past_run import outcome_of
from rlm_loop.outcome import Outcome, Stop
from rlm_loop.study.errors import StudyError
from rlm_loop.study.plan.grid import Episode, StudyAgent
from rlm_loop.study.plan.identity import mark_of
from rlm_loop.study.store.archive import finished_rows, trace_of
from rlm_loop.study.store.folder import Store
from rlm_loop.study.store.reading import LOCK, read_lock
from rlm_loop.study.store.rows import Row, crash_line, finished, make_row, score_fields
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.base import Suite, Task
from rlm_loop.tasks.registry import get_suite
from rlm_loop.traces.reader import supersede
from rlm_loop.traces.trace import TraceError

#: Marks of a trace that does not hold a run as it was: a value that is no JSON, and a key that was blanked out.
_INEXACT = ('{"repr": ', "[redacted]")
#: What a row keeps of an old score.
_SCORE = ("resolved", "value", "score_reason")


def utc_now() -> str:
    """The time in UTC, in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def run_episode(
    study: str, episode: Episode, agents: Callable[[Episode], StudyAgent], folder: Path
) -> tuple[Row, BaseException | None]:
    """Attempt one episode's task and score it: the row, and what crashed if something did (the attempt, or its scorer).

    Of an episode whose attempt was made but not scored, only the scorer is run.  Scoring is in no time of the row.
    Raises `KeyboardInterrupt` where the user stopped the attempt.
    """
    if episode.unscored is not None:
        judged, fault = scored(episode.task, recorded_attempt(folder, dict(episode.unscored)))
        return {**episode.unscored, **judged, "rescored": True}, fault
    started, begin = utc_now(), time.monotonic()
    outcome: Outcome | None = None
    judged: Row | None = None
    crash: BaseException | None = None
    try:
        supersede(folder / episode.trace)  # what an earlier attempt left there is not the row's
        outcome = agents(episode).attempt(episode.task, trace=str(folder / episode.trace))
    except (Exception, SystemExit) as error:
        crash, partial = error, getattr(error, "outcome", None)
        outcome = partial if isinstance(partial, Outcome) else None
    spent, fault = time.monotonic() - begin, crash
    if outcome is not None and outcome.stop == Stop.INTERRUPTED:
        raise KeyboardInterrupt
    if crash is None and outcome is not None:
        judged, fault = scored(episode.task, Attempt.of(outcome))
    return make_row(study, episode, started=started, seconds=spent, outcome=outcome, judged=judged, crash=crash), fault


def scored(task: Task, attempt: Attempt) -> tuple[Row, BaseException | None]:
    """The fields of a row that say how an attempt was judged, and what the scorer raised, if it did.

    Ctrl-C is told so as well: the attempt is made, and must not be lost with its score.
    """
    try:
        found = score_fields(task.judge(attempt))  # a scorer may put an answer of any kind into its score
        if len(task.submissions) > 1:
            others = {s: task.judge(attempt, s).resolved for s in task.submissions[1:]}
            found["by_submission"] = {task.submissions[0]: found["resolved"], **others}
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        error.add_note("while scoring")
        return {**score_fields(None), "scorer_error": crash_line(error)}, error
    return {**found, "scorer_error": None}, None


def recorded_attempt(folder: str | Path, row: Row) -> Attempt:
    """The attempt of a row, read from its trace; values that are no JSON are there as their `repr`.

    Raises `TraceError` where the trace is not there or damaged.
    """
    return Attempt.of(outcome_of(trace_of(folder, row)))


def can_be_scored(folder: str | Path, row: Row | None) -> bool:
    """Return whether a row's attempt still has to be scored, and its trace holds it exactly as it was."""
    if row is None or not finished(row) or not row.get("scorer_error"):
        return False
    try:
        record = trace_of(folder, row)
    except TraceError:
        return False
    events: Any = record.events
    text = json.dumps([record.end, events], default=str)
    return record.end is not None and not any(mark in text for mark in _INEXACT)


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
            store.write(LOCK, {**lock, "identity": mark_of(lock)})
