"""Reading a study: tables and figures; and the figure of what one run saw of its context."""

from __future__ import annotations

from rlm_loop.report.anytime import anytime_figure, anytime_table, save_anytime_figure
from rlm_loop.report.failures import failure_table, patch_failure_table
from rlm_loop.report.plots import figure, save_figure
from rlm_loop.report.sizes import by_size, save_size_figure, size_figure, size_table
from rlm_loop.report.strips import coverage_figure, save_coverage_figure
from rlm_loop.report.table import Table
from rlm_loop.report.tables import arm_table, provenance_line, suite_table, target_table

__all__ = [
    "Table",
    "anytime_figure",
    "anytime_table",
    "arm_table",
    "by_size",
    "coverage_figure",
    "failure_table",
    "figure",
    "patch_failure_table",
    "provenance_line",
    "save_anytime_figure",
    "save_coverage_figure",
    "save_figure",
    "save_size_figure",
    "size_figure",
    "size_table",
    "suite_table",
    "target_table",
]
