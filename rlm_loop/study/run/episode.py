"""One episode: attempt a task and score the attempt; and a study's episodes, one after the other.

What goes wrong with the scorer or the machine leaves an attempt unscored, never "not resolved".  The row of an unscored
attempt keeps what was to be scored, so that the next run scores it again without a model call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rlm_loop.messages import digest
from rlm_loop.outcome import Outcome, Stop
from rlm_loop.study.plan.grid import Episode, StudyAgent
from rlm_loop.study.run.scheduler import Clock, Scheduler
from rlm_loop.study.store.rows import Row, crash_line, make_row, score_fields
from rlm_loop.tasks.attempt import Attempt
from rlm_loop.tasks.base import Task
from rlm_loop.tasks.written import Written
from rlm_loop.traces.reader import supersede


def run_episodes(study: str, scheduler: Scheduler, agents: Callable[[Episode], StudyAgent], folder: Path) -> int:
    """Run the episodes of a scheduler in order, a row for each; returns how many were run.

    A crash is a row.  Ctrl-C raises `StudyInterrupted`; the episode that was running leaves no row.  Raises also what
    `Scheduler.end` raises.
    """
    while (episode := scheduler.next()) is not None:
        try:
            row, fault = run_episode(study, episode, agents, folder, scheduler.clock)
        except KeyboardInterrupt:
            raise scheduler.interrupted() from None
        scheduler.end(episode, row, fault)
        if isinstance(fault, KeyboardInterrupt):  # while scoring
            raise scheduler.interrupted()
    return scheduler.done


def run_episode(
    study: str, episode: Episode, agents: Callable[[Episode], StudyAgent], folder: Path, clock: Clock
) -> tuple[Row, BaseException | None]:
    """Attempt one episode's task and score it: the row, and what crashed if something did (the attempt, or its scorer).

    Of an episode whose attempt was made but not scored, only the scorer is run.  Scoring happens after the clock has
    stopped.  Raises `KeyboardInterrupt` where the user stopped the attempt.
    """
    if episode.unscored is not None:
        return scored_again(episode)
    started, begin = clock.now(), clock.seconds()
    outcome: Outcome | None = None
    judged: Row | None = None
    fault: BaseException | None = None
    try:
        supersede(folder / episode.trace)  # what an earlier attempt left there is not the row's
        outcome = agents(episode).attempt(episode.task, trace=str(folder / episode.trace))
    except (Exception, SystemExit) as error:
        fault, outcome = error, _partial(error)
    spent = clock.seconds() - begin
    if outcome is not None and outcome.stop == Stop.INTERRUPTED:
        raise KeyboardInterrupt
    crash = fault
    if fault is None and outcome is not None:
        judged, fault = scored(episode.task, Attempt.of(outcome))
    row = make_row(
        study,
        episode,
        started=started,
        seconds=spent,
        outcome=outcome,
        judged=judged,
        error=None if crash is None else crash_line(crash),
        error_class=None if crash is None else type(crash).__name__,
    )
    return row, fault


def _partial(error: BaseException) -> Outcome | None:
    """What was done until a crash, where the loop attached it."""
    outcome: Any = getattr(error, "outcome", None)
    return outcome if isinstance(outcome, Outcome) else None


def agent_of(arms: Mapping[tuple[str, int], Mapping[str, StudyAgent]]) -> Callable[[Episode], StudyAgent]:
    """The agent of an episode, from the arms of each model name and seed."""
    return lambda episode: arms[episode.model, episode.seed][episode.arm]


#: The field of a row with what is still to be scored.
TO_SCORE = "to_score"

_HELD = ("answer", "artifact", "answered", "last_reply", "isolation", "written")  # older rows lack the last three
_DIGESTED = ("answer", "artifact", "written")


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
        kept = _kept(attempt)
        return {**score_fields(None), "scorer_error": crash_line(error), **({TO_SCORE: kept} if kept else {})}, error
    return {**found, "scorer_error": None}, None


def scored_again(episode: Episode) -> tuple[Row, BaseException | None]:
    """The row of an unscored attempt, with what its scorer says now (`rescored`: it cost nothing more)."""
    row = {name: value for name, value in (episode.unscored or {}).items() if name != TO_SCORE}
    kept = (episode.unscored or {})[TO_SCORE]
    found, fault = scored(episode.task, _attempt(kept))
    return {**row, **found, "rescored": True}, fault


def can_be_scored(row: Mapping[str, Any] | None) -> bool:
    """Whether a row holds an unscored attempt exactly as it was: what looked like a key was blanked out on the way."""
    kept = None if row is None else row.get(TO_SCORE)
    return bool(kept) and digest([kept[n] for n in _DIGESTED if n in kept]) == kept["digest"]


def _attempt(kept: Mapping[str, Any]) -> Attempt:
    """An attempt as a row kept it."""
    held: dict[str, Any] = {name: kept[name] for name in _HELD if name in kept}
    held["written"] = tuple(Written(**piece) for piece in kept.get("written", ()))
    return Attempt(**held)


def _kept(attempt: Attempt) -> Row | None:
    """An attempt as JSON; `None` where it would not come back as it is."""
    held = {name: getattr(attempt, name) for name in _HELD}
    held["written"] = [asdict(piece) for piece in attempt.written]
    exact = [held[name] for name in _DIGESTED]
    try:
        back = json.loads(json.dumps(exact))
    except (TypeError, ValueError, RecursionError):
        return None
    return {**held, "digest": digest(exact)} if back == exact else None
