"""Running the cells of a grid one after the other, so that whatever happens the finished ones are kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rlm_loop.models.base import AuthenticationFailed, ModelNotFound
from rlm_loop.outcome import Outcome, Stop
from rlm_loop.study.errors import StudyInterrupted
from rlm_loop.study.grid import Agent, Cell
from rlm_loop.study.progress import Progress
from rlm_loop.study.rows import Row, crash_line, make_row
from rlm_loop.study.store import Store
from rlm_loop.tasks.base import Attempt, Score

#: No cell can succeed while one of these is not put right.
_SET_UP = (AuthenticationFailed, ModelNotFound)


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Clock:
    """Where times come from; an argument, so that tests need not wait."""

    seconds: Callable[[], float] = time.monotonic
    now: Callable[[], str] = utc_now


def run_cells(
    study: str,
    cells: Sequence[Cell],
    agents: Callable[[Cell], Agent],
    store: Store,
    progress: Progress,
    *,
    seconds: float | None = None,
    clock: Clock = Clock(),
) -> int:
    """Run the cells in order, appending a row for each; returns how many were run.

    `seconds` ends the run before the first task that would start later than that; a task begun is done by all
    arms.  A crash is a row.  Ctrl-C raises `StudyInterrupted`; the cell that was running leaves no row.  A model
    that is not there or a key that is wrong is raised once every arm of the first task has met it.
    """
    begun = clock.seconds()
    first = sum(_task(c) == _task(cells[0]) for c in cells)
    set_up_faults = 0
    for number, cell in enumerate(cells):
        new_task = number == 0 or _task(cell) != _task(cells[number - 1])
        if seconds is not None and new_task and clock.seconds() - begun >= seconds:
            return number
        progress.begin(cell)
        try:
            row, fault = run_cell(study, cell, agents, store.folder, clock)
        except KeyboardInterrupt:
            left = len(cells) - number
            raise StudyInterrupted(
                f"stopped with {left} cells to go; finished cells are kept, run the same command again to go on",
                number,
                len(cells),
            ) from None
        store.append(row)
        progress.end(row)
        set_up_faults += isinstance(fault, _SET_UP)
        if fault is not None and set_up_faults == first == number + 1:
            raise fault
    return len(cells)


def run_cell(
    study: str, cell: Cell, agents: Callable[[Cell], Agent], folder: Path, clock: Clock
) -> tuple[Row, BaseException | None]:
    """Attempt one cell's task and score it: the row, and what crashed if something did.

    Scoring happens after the clock has stopped.  Raises `KeyboardInterrupt` where the user stopped the attempt.
    """
    started, begin = clock.now(), clock.seconds()
    outcome: Outcome | None = None
    score: Score | None = None
    fault: BaseException | None = None
    try:
        outcome = agents(cell).attempt(cell.task, trace=str(folder / cell.trace))
    except (Exception, SystemExit) as error:
        fault, outcome = error, _partial(error)
    spent = clock.seconds() - begin
    if outcome is not None and outcome.stop == Stop.INTERRUPTED:
        raise KeyboardInterrupt
    if fault is None and outcome is not None:
        try:
            score = cell.task.score(Attempt(outcome.answer, outcome.artifact, outcome.answered))
        except (Exception, SystemExit) as error:
            fault = error
            error.add_note("while scoring")
    row = make_row(study, cell, started=started, seconds=spent, outcome=outcome, score=score, error=_line(fault))
    return row, fault


def _line(fault: BaseException | None) -> str | None:
    if fault is None:
        return None
    scoring = "while scoring" in getattr(fault, "__notes__", ())
    return ("scoring failed: " if scoring else "") + crash_line(fault)


def _partial(error: BaseException) -> Outcome | None:
    """What was done until a crash, where the loop attached it."""
    outcome: Any = getattr(error, "outcome", None)
    return outcome if isinstance(outcome, Outcome) else None


def _task(cell: Cell) -> tuple[str, str]:
    return (cell.suite, cell.task.id)


def agent_of(arms: Mapping[tuple[str, int], Mapping[str, Agent]]) -> Callable[[Cell], Agent]:
    """The agent of a cell, from the arms of each model name and seed."""
    return lambda cell: arms[cell.model, cell.seed][cell.arm]
