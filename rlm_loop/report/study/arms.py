"""The tables of the arms: what each resolved, what it cost, and which of the targets it misses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rlm_loop.report.tables.study_tables import (
    count,
    counted,
    counting_note,
    decimal,
    declared_targets,
    interval,
    pair,
    percent,
    resolved,
    suite_table,
    versus,
)
from rlm_loop.report.tables.table import Table
from rlm_loop.study import ArmSummary, Results, StudyError

Column = tuple[str, Callable[[ArmSummary], str]]
#: The field that a column shows, where it can have a target.
_FIELDS = {
    "rate [95 % CI]": "rate",
    "steps (p95)": "steps",
    "tokens p95 / baseline": "tokens_p95_ratio",
    "seconds (p95)": "seconds_p95",
    "tool seconds, p95": "tool_seconds_p95",
}

_OUTCOME: Sequence[Column] = (
    ("n", lambda s: str(s.n)),
    ("resolved", resolved),
    ("rate [95 % CI]", lambda s: interval(s)),
    ("only this / only baseline", versus),
    ("answered", lambda s: percent(s.answered)),
    ("steps (p95)", lambda s: pair(s.steps, s.steps_p95)),
    ("failed actions", lambda s: percent(s.failed_actions)),
    ("unreadable replies", lambda s: percent(s.malformed)),
)
_COST: Sequence[Column] = (
    ("tokens in", lambda s: count(s.input_tokens)),
    ("out", lambda s: count(s.output_tokens)),
    ("new", lambda s: count(s.new_tokens)),
    ("scaffold", lambda s: f"{count(s.scaffold_tokens)} ({percent(s.scaffold_share)})"),
    ("tokens p95 / baseline", lambda s: _times(s.tokens_p95_ratio)),
    ("cost", lambda s: "-" if s.cost is None else f"{s.cost:.4g}"),
    ("cost p95 / baseline", lambda s: _times(s.cost_p95_ratio)),
    ("seconds (p95)", lambda s: pair(s.seconds, s.seconds_p95)),
    ("tool seconds, p95", lambda s: decimal(s.tool_seconds_p95)),
)


def arm_tables(results: Results, baseline: str) -> list[Table]:
    """Outcome and cost of each arm on the units that every arm was tried on, and the outcome suite by suite.

    Raises `StudyError` where there is no such unit.
    """
    if not results.complete_pairs:
        raise StudyError("No task was tried by every arm yet, so there is nothing to compare.")
    found = results.summary(baseline)
    shared = [
        *counted(found),
        "p95: the 95th percentile. Only this / only baseline: tasks that one of the two arms resolved and the other "
        "did not.",
    ]
    held = declared_targets(results).values()
    targets = ", ".join(f"{name} {'at least' if more else 'at most'} {limit:g}" for name, limit, more in held)
    missed = [f"Missed: beyond a declared target ({targets})."] if targets else []
    tokens = (
        "Tokens in: all prompt tokens, those re-sent included; new: those not taken from a prefix cache; scaffold: "
        "those that the strategy added, and their share. A dash is not known."
    )
    parts = [
        _table("Outcome", _OUTCOME, results, found, shared),
        _table("Cost", _COST, results, found, [tokens, counting_note(results), *missed]),
    ]
    if len({row["suite"] for row in results.rows}) > 1:
        table = suite_table(results, baseline)
        parts.append(Table("Suite by suite", table.columns, table.rows, labels=table.labels))
    return parts


def _table(
    title: str, columns: Sequence[Column], results: Results, found: Sequence[ArmSummary], notes: Sequence[str]
) -> Table:
    several = len(results.models) > 1
    names = [*(["model"] if several else []), "arm"]
    held = declared_targets(results)
    rows = [
        [*([s.model] if several else []), s.arm, *(shown(s) + _missed(name, s, held) for name, shown in columns)]
        for s in found
    ]
    return Table(title, [*names, *(name for name, _ in columns)], rows, notes, labels=len(names))


def _missed(column: str, s: ArmSummary, held: Mapping[str, tuple[str, float, bool]]) -> str:
    """A word where the figure does not meet the target that the study declared for it."""
    field = _FIELDS.get(column, "")
    value: float | None = getattr(s, field, None)
    if field not in held or value is None:
        return ""
    _, limit, more = held[field]
    return "" if (value >= limit if more else value <= limit) else " missed"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
