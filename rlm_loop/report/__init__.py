"""Reading a study: tables, figures and pages."""

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
from rlm_loop.report.figures.overhead import mean_session, overhead
from rlm_loop.report.notebook.formatting import step_text
from rlm_loop.report.notebook.live import LiveRun, LiveView, start_live
from rlm_loop.report.run.page import run_page
from rlm_loop.report.study.page import compare_page, study_page, write_study_page, write_trace_pages
from rlm_loop.report.tables.comparison import effect_table, flip_table
from rlm_loop.report.tables.study_tables import arm_table, suite_table
from rlm_loop.report.tables.table import Table, write_between
from rlm_loop.report.view.server import viewing

__all__ = [
    "LiveRun",
    "LiveView",
    "Table",
    "alt_text",
    "arm_table",
    "compare_page",
    "effect_table",
    "factor_response",
    "flip_table",
    "mean_session",
    "overhead",
    "overhead_by_turn",
    "paired_differences",
    "resolve_against_tokens",
    "resolve_rates",
    "run_page",
    "save",
    "stacked_causes",
    "start_live",
    "step_text",
    "study_page",
    "style",
    "suite_table",
    "viewing",
    "write_between",
    "write_study_page",
    "write_trace_pages",
]
