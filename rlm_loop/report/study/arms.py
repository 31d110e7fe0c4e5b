"""The tables of the arms: what each resolved, what it cost, and which of the targets it misses."""

from __future__ import annotations

from dataclasses import replace

from rlm_loop.report.tables.study_tables import counted, counting_note, declared_targets, suite_table, summary_table
from rlm_loop.report.tables.table import Table
from rlm_loop.study import Results, StudyError

_OUTCOME = (
    *("n", "resolved", "rate [95 % CI]", "only this / only baseline", "answered", "steps (p95)"),
    *("failed actions", "unreadable replies"),
)
_COST = (
    *("tokens in", "out", "new", "scaffold", "tokens p95 / baseline", "cost", "cost p95 / baseline"),
    *("seconds (p95)", "tool seconds, p95"),
)


def arm_tables(results: Results, baseline: str) -> list[Table]:
    """Outcome and cost of each arm on the units that every arm was tried on, and the outcome suite by suite.

    Raises `StudyError` where there is no such unit.
    """
    if not results.complete_pairs:
        raise StudyError("No task was tried by every arm yet, so there is nothing to compare.")
    found, targets = results.summary(baseline), declared_targets(results)
    shared = [
        *counted(found),
        "p95: the 95th percentile. Only this / only baseline: tasks that one of the two arms resolved and the other "
        "did not.",
    ]
    limits = [f"{name} {'at least' if more else 'at most'} {limit:g}" for name, limit, more in targets.values()]
    missed = [f"Missed: beyond a declared target ({', '.join(limits)})."] if limits else []
    tokens = (
        "Tokens in: all prompt tokens, those re-sent included; new: those not taken from a prefix cache; scaffold: "
        "those that the strategy added, and their share. A dash is not known."
    )
    parts = [
        summary_table("Outcome", _OUTCOME, found, shared, targets),
        summary_table("Cost", _COST, found, [tokens, counting_note(results), *missed], targets),
    ]
    if len({row["suite"] for row in results.rows}) > 1:
        parts.append(replace(suite_table(results, baseline), title="Suite by suite", notes=()))
    return parts
