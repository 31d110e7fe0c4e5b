"""The results of a study's folder, in the order in which they are read best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rlm_loop.study.errors import StudyError
from rlm_loop.study.results import Results
from rlm_loop.study.store.reading import every_row, latest, read_lock
from rlm_loop.study.store.rows import Row


def results_of(folder: str | Path, *, recorded: bool) -> Results:
    """The results in a folder: tasks in the order of their first start, the arms of each as declared."""
    lock = read_lock(folder)
    if lock is None:
        raise StudyError(f"{folder} holds no study (no study.json); run one there, or give another folder")
    unsorted = Results(latest(every_row(folder)), lock, str(folder), recorded)
    return replace(unsorted, rows=_in_order(unsorted.rows, unsorted.arms))


def _in_order(rows: Sequence[Row], arms: Sequence[str]) -> list[Row]:
    """Rows by task, block and arm: chance, several jobs and episodes tried again mix the order of running."""
    tasks: dict[tuple[str, str], int] = {}
    blocks: dict[tuple[str, int], int] = {}
    for row in rows:
        tasks.setdefault((row["suite"], row["task"]), len(tasks))
        blocks.setdefault((row["model"], row["seed"]), len(blocks))
    place = {arm: n for n, arm in enumerate(arms)}
    return sorted(
        rows,
        key=lambda r: (tasks[r["suite"], r["task"]], blocks[r["model"], r["seed"]], place[r["arm"]]),
    )


def load_study(folder: str | Path) -> Results:
    """The results of a study as recorded in a folder, loose or packed (`export`, `compact`).

    Raises `StudyError` where the folder holds no study, or something in it cannot be read.
    """
    return results_of(folder, recorded=True)
