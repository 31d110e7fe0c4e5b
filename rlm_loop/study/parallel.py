"""Running several cells at a time, in threads; what finishes is recorded as it comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from rlm_loop.study.errors import StudyInterrupted
from rlm_loop.study.grid import Agent, Cell
from rlm_loop.study.progress import Progress
from rlm_loop.study.rows import Row
from rlm_loop.study.runner import Clock, run_cell
from rlm_loop.study.store import Store


def run_parallel(
    study: str,
    cells: Sequence[Cell],
    agents: Callable[[Cell], Agent],
    store: Store,
    progress: Progress,
    *,
    jobs: int,
    seconds: float | None = None,
    clock: Clock | None = None,
) -> int:
    """Run the cells with `jobs` at a time, started in order; returns how many were run.

    `seconds` starts no further cell once that much time has passed.  Ctrl-C starts no further cell, waits for the
    running ones (their rows are kept) and raises `StudyInterrupted`.  Seconds of a cell are wall time, in which the
    other cells share the machine.
    """
    clock = clock or Clock()
    begun, done = clock.seconds(), 0
    waiting = list(reversed(cells))
    running: dict[Future[tuple[Row, BaseException | None]], Cell] = {}
    with ThreadPoolExecutor(jobs, thread_name_prefix="cell") as pool:
        try:
            while waiting or running:
                late = seconds is not None and clock.seconds() - begun >= seconds
                while waiting and len(running) < jobs and not late:
                    cell = waiting.pop()
                    progress.begin(cell)
                    running[pool.submit(run_cell, study, cell, agents, store.folder, clock)] = cell
                if not running:
                    break
                done += _record(wait(running, return_when=FIRST_COMPLETED).done, running, store, progress)
        except KeyboardInterrupt:
            done += _record(wait(running).done, running, store, progress)
            raise StudyInterrupted(
                f"stopped with {len(cells) - done} cells to go; finished cells are kept, run the same command again to "
                "go on",
                done,
                len(cells),
            ) from None
    return done


def _record(
    ended: set[Future[tuple[Row, BaseException | None]]],
    running: dict[Future[tuple[Row, BaseException | None]], Cell],
    store: Store,
    progress: Progress,
) -> int:
    for future in ended:
        running.pop(future)
        row, _ = future.result()
        store.append(row)
        progress.end(row)
    return len(ended)
