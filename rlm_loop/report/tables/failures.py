"""Why episodes failed, counted by arm: tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rlm_loop.report.tables.table import Table
from rlm_loop.study.compare.patch_failures import LABELS
from rlm_loop.study.coverage.diagnose import REASONS
from rlm_loop.tasks.long_context.plan import size_name


def failure_table(episodes: Sequence[Mapping[str, Any]], by: str = "size") -> Table:
    """Episodes over long contexts by reason, one row a value of `by` (`"size"`, `"family"`, any other field) and arm.

    `episodes` are the rows of `study.diagnose_episodes`.
    """
    return _counted(episodes, by, "reason", REASONS, "Why it failed, by what of the context was looked at")


def patch_failure_table(episodes: Sequence[Mapping[str, Any]], by: str = "suite") -> Table:
    """Episodes with a workspace by class, one row a value of `by` and arm; `episodes` as of
    `patching.diagnose_patches`.  Classes that nothing fell into have no column."""
    met = {row["label"] for row in episodes}
    classes = {label: meaning for label, meaning in LABELS.items() if label in met or label == "resolved"}
    return _counted(episodes, by, "label", classes, "How far it got, and how it ended")


def _counted(
    episodes: Sequence[Mapping[str, Any]], by: str, field: str, reasons: Mapping[Any, str], title: str
) -> Table:
    groups = sorted({row[by] for row in episodes}, key=lambda v: (isinstance(v, str), v))
    arms = list(dict.fromkeys(row["arm"] for row in episodes))
    rows: list[list[str]] = []
    for group in groups:
        for arm in arms:
            mine = [row for row in episodes if row[by] == group and row["arm"] == arm]
            counted = Counter(row[field] for row in mine)
            if mine:
                shown = size_name(group) if by == "size" else str(group)
                rows.append([shown, arm, str(len(mine)), *(str(counted[reason] or "-") for reason in reasons)])
    notes = [f"{reason.replace('_', ' ')}: {meaning}." for reason, meaning in reasons.items() if reason != "resolved"]
    columns = [by, "arm", "n", *(reason.replace("_", " ") for reason in reasons)]
    return Table(title, columns, rows, notes, labels=2)
