"""Why episodes over long contexts failed, counted by arm and size: a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rlm_loop.coverage.diagnose import REASONS
from rlm_loop.report.table import Table
from rlm_loop.tasks.long_context.draw import size_name


def failure_table(episodes: Sequence[Mapping[str, Any]], by: str = "size") -> Table:
    """Episodes by reason, one row a value of `by` (`"size"`, `"family"` or any other field) and arm.

    `episodes` are the rows of `study.failures.diagnose_episodes`.
    """
    groups = sorted({row[by] for row in episodes}, key=lambda v: (isinstance(v, str), v))
    arms = list(dict.fromkeys(row["arm"] for row in episodes))
    rows: list[list[str]] = []
    for group in groups:
        for arm in arms:
            mine = [row for row in episodes if row[by] == group and row["arm"] == arm]
            counted = Counter(row["reason"] for row in mine)
            if mine:
                shown = size_name(group) if by == "size" else str(group)
                rows.append([shown, arm, str(len(mine)), *(str(counted[reason] or "-") for reason in REASONS)])
    notes = [f"{reason.replace('_', ' ')}: {meaning}." for reason, meaning in REASONS.items() if reason != "resolved"]
    columns = [by, "arm", "n", *(reason.replace("_", " ") for reason in REASONS)]
    return Table("Why it failed, by what of the context was looked at", columns, rows, notes, labels=2)
