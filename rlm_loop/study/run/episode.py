"""An episode: attempt a task and score the attempt.

A fault of the scorer or the machine leaves an attempt unscored, never "not resolved".  The next run scores it again
from its trace, without a model call.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rlm_loop.agents.past_run import outcome_of
from rlm_loop.outcome import Outcome, Stop
from rlm_loop.study.plan.grid import Episode, StudyAgent
from rlm_loop.study.store.archive import trace_of
from rlm_loop.study.store.rows import Row, crash_line, finished, make_row, score_fields
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.base import Task
from rlm_loop.traces.reader import supersede
from rlm_loop.traces.trace import TraceError

#: Marks of a trace that does not hold a run as it was: a value that is no JSON, and a key that was blanked out.
_INEXACT = ('{"repr": ', "[redacted]")


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
