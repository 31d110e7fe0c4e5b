"""Reading a study: tables and figures."""

from __future__ import annotations

from rlm_loop.report.figures import (
    alt_text,
    factor_response,
    overhead_by_turn,
    paired_differences,
    resolve_against_tokens,
    resolve_rates,
    save,
    stacked_causes,
    style,
)
from rlm_loop.report.figures.run_overhead import cause_table, growths, overhead_table
from rlm_loop.report.figures.sessions import mean_session
from rlm_loop.report.tables.readme import write_between
from rlm_loop.report.tables.study_tables import arm_table, provenance_line, suite_table, target_table
from rlm_loop.report.tables.table import Table

__all__ = [
    "Table",
    "alt_text",
    "arm_table",
    "cause_table",
    "factor_response",
    "growths",
    "mean_session",
    "overhead_by_turn",
    "overhead_table",
    "paired_differences",
    "provenance_line",
    "resolve_against_tokens",
    "resolve_rates",
    "save",
    "stacked_causes",
    "style",
    "suite_table",
    "target_table",
    "write_between",
]
