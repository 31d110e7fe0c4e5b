"""Reading a study: tables and one figure."""

from __future__ import annotations

from rlm_loop.report.plots import figure, save_figure
from rlm_loop.report.table import Table
from rlm_loop.report.tables import arm_table, provenance_line, suite_table, target_table

__all__ = ["Table", "arm_table", "figure", "provenance_line", "save_figure", "suite_table", "target_table"]
