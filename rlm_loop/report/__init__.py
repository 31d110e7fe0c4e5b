"""Reading a study: tables and figures; and the figures of one run: what it saw, and where its tokens went."""

from __future__ import annotations

from rlm_loop.report.figures import (
    ablation_heatmap,
    alt_text,
    cost_tree,
    dose_response,
    overhead_by_turn,
    paired_differences,
    paired_slopes,
    resolve_against_tokens,
    resolve_rates,
    save,
    stacked_causes,
    style,
)
from rlm_loop.report.figures.dose_arms import by_dose, dose_table
from rlm_loop.report.figures.overview import figure
from rlm_loop.report.figures.run_overhead import cause_table, growths, overhead_table
from rlm_loop.report.figures.sessions import mean_session
from rlm_loop.report.figures.sizes import by_size, size_figure, size_table
from rlm_loop.report.figures.turns import tokens_by_turn, turns_text
from rlm_loop.report.tables.preset_table import preset_table
from rlm_loop.report.tables.study_tables import arm_table, provenance_line, suite_table, target_table
from rlm_loop.report.tables.table import Table

__all__ = [
    "Table",
    "ablation_heatmap",
    "alt_text",
    "arm_table",
    "by_dose",
    "by_size",
    "cause_table",
    "cost_tree",
    "dose_response",
    "dose_table",
    "figure",
    "growths",
    "mean_session",
    "overhead_by_turn",
    "overhead_table",
    "paired_differences",
    "paired_slopes",
    "preset_table",
    "provenance_line",
    "resolve_against_tokens",
    "resolve_rates",
    "save",
    "size_figure",
    "size_table",
    "stacked_causes",
    "style",
    "suite_table",
    "target_table",
    "tokens_by_turn",
    "turns_text",
]
