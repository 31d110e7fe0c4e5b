"""The table of what a smaller budget would have given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlm_loop.agents.attempts.anytime import Anytime
from rlm_loop.report.tables.study_tables import rate
from rlm_loop.report.tables.table import Table
from rlm_loop.study import statistics
from rlm_loop.study.compare.anytime_curves import curve


def anytime_table(runs: Mapping[str, Sequence[Anytime]], steps: Sequence[int] = (5, 10, 15)) -> Table:
    """One row an arm: resolved at the end and within so many steps, when first, and how many broke it again."""
    columns = ["arm", "n", "resolved", "rate [95 % CI]", *(f"within {s}" for s in steps), "first at", "broken later"]
    rows: list[list[str]] = []
    for arm, of in runs.items():
        ends, first = sum(run.resolved for run in of), [run.resolved_at for run in of if run.resolved_at is not None]
        low, high = statistics.wilson_by_cluster([float(run.resolved) for run in of], [run.task for run in of])
        within = curve(of, "step", steps).resolved if of else [0] * len(steps)
        rows.append(
            [
                arm,
                str(len(of)),
                str(ends),
                rate(ends / len(of), low, high) if of else "-",
                *(str(count) for count in within),
                f"{sum(first) / len(first):.1f}" if first else "-",
                str(sum(run.broken_later for run in of)),
            ]
        )
    notes = [
        "within k: runs that are right after step k. first at: mean step of those that ever were. "
        "broken later: right once, wrong at the end."
    ]
    return Table("What a smaller budget would have given", columns, rows, notes, labels=1)
