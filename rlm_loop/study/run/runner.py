"""Running the episodes of a grid one after the other, so that whatever happens the finished ones are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rlm_loop.outcome import Outcome, Stop
from rlm_loop.study.plan.grid import Agent, Episode
from rlm_loop.study.run.scheduler import SET_UP, Clock, Scheduler, portable, utc_now
from rlm_loop.study.run.scoring import scored, scored_again
from rlm_loop.study.store.rows import Row, crash_line, make_row
from rlm_loop.tasks.base import Attempt
from rlm_loop.traces.runs import supersede

__all__ = ["SET_UP", "Clock", "agent_of", "portable", "run_episode", "run_episodes", "utc_now"]


def run_episodes(study: str, scheduler: Scheduler, agents: Callable[[Episode], Agent], folder: Path) -> int:
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
    study: str, episode: Episode, agents: Callable[[Episode], Agent], folder: Path, clock: Clock
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


def agent_of(arms: Mapping[tuple[str, int], Mapping[str, Agent]]) -> Callable[[Episode], Agent]:
    """The agent of an episode, from the arms of each model name and seed."""
    return lambda episode: arms[episode.model, episode.seed][episode.arm]
