"""Figures of studies and runs: one style, each figure one function from a frame, each with an alternative text.

>>> from rlm_loop.report.figures import resolve_rates, save                # doctest: +SKIP
>>> save(resolve_rates(load_study("runs/mine").frame()), "rates.svg")      # doctest: +SKIP
"""

from __future__ import annotations

from rlm_loop.report.figures.ablation import ablation_heatmap
from rlm_loop.report.figures.causes import stacked_causes
from rlm_loop.report.figures.cost_tree import cost_tree
from rlm_loop.report.figures.differences import paired_differences
from rlm_loop.report.figures.doses import dose_response
from rlm_loop.report.figures.overhead_by_turn import overhead_by_turn
from rlm_loop.report.figures.paired import paired_slopes
from rlm_loop.report.figures.pareto import resolve_against_tokens
from rlm_loop.report.figures.rates import resolve_rates
from rlm_loop.report.figures.saving import alt_text, data_uri, save, svg
from rlm_loop.report.figures.style import marks, style

__all__ = [
    "ablation_heatmap",
    "alt_text",
    "cost_tree",
    "data_uri",
    "dose_response",
    "marks",
    "overhead_by_turn",
    "paired_differences",
    "paired_slopes",
    "resolve_against_tokens",
    "resolve_rates",
    "save",
    "stacked_causes",
    "style",
    "svg",
]
