"""Every interval of a rate knows that the seeds of a task belong together: ten that end alike are worth one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from made_rows import made_results

from rlm_loop.agents.attempts.anytime import Anytime, State
from rlm_loop.report import anytime_table
from rlm_loop.report.figures.budgets import Ends
from rlm_loop.report.figures.sizes import by_size
from rlm_loop.study import Results
from rlm_loop.study.statistics import wilson, wilson_by_cluster

TASKS, SEEDS = 10, 10


def seeded() -> Results:
    """Ten seeds of ten tasks, of which every second task is resolved by all seeds."""
    base = made_results(tasks=TASKS, arms={"code": (0.5, 100, 10, 2)})
    rows: list[dict[str, Any]] = []
    for row in (r for r in base.rows if r["suite"].startswith("tables")):
        right = int(row["task"].removeprefix("task-")) % 2 == 0
        rows += [{**row, "seed": s, "resolved": right, "facts": {"size": 8_000}} for s in range(SEEDS)]
    return replace(base, rows=rows)


def width(low: float, high: float) -> float:
    return 100 * (high - low)


def test_sizes() -> None:
    (point,) = by_size(seeded())
    assert (point.resolved, point.n) == (50, 100)
    assert width(point.low, point.high) > 45  # that of 10 tasks; of 100 it would be 19
    assert width(*wilson(50, 100)) < 20


def test_what_was_not_scored_is_no_wrong_answer() -> None:
    results = seeded()
    for row in results.rows[:10]:
        row["resolved"], row["value"] = None, None
    (point,) = by_size(results)
    assert point.n == 90


def test_budgets() -> None:
    runs = [[(1.0, task % 2 == 0)] for task in range(TASKS) for _ in range(SEEDS)]
    ends = Ends("code", runs, [task for task in range(TASKS) for _ in range(SEEDS)])
    values = [float(r) for r in ends.right]
    assert ends.curve() == [(1.0, 50, 50)]
    assert width(*wilson_by_cluster(values, ends.tasks)) > 45


def test_anytime() -> None:
    def run(task: int) -> Anytime:
        right = task % 2 == 0
        end = State(1, "0", 10, 5, 1.0, True, "tree", "patch", right, float(right), "")
        return Anytime(f"t{task}", (end,), 1)

    table = anytime_table({"code": [run(task) for task in range(TASKS) for _ in range(SEEDS)]})
    low, high = table.rows[0][3].partition("[")[2].rstrip("]").split("-")
    assert int(high) - int(low) > 45


@pytest.mark.parametrize("seeds", [1])
def test_one_seed_is_wilsons_interval(seeds: int) -> None:
    (point,) = by_size(replace(found := seeded(), rows=[r for r in found.rows if r["seed"] < seeds]))
    assert (point.low, point.high) == pytest.approx(wilson(5, 10))
