"""Six figures of studies and runs: one style, each a function from a frame, each with an alternative text."""

from __future__ import annotations

from rlm_loop.report.figures.differences import paired_differences
from rlm_loop.report.figures.overhead import overhead_by_turn, stacked_causes
from rlm_loop.report.figures.rates import factor_response, resolve_against_tokens, resolve_rates
from rlm_loop.report.figures.style import alt_text, cause_colour, data_uri, marks, save, style

__all__ = [
    "alt_text",
    "cause_colour",
    "data_uri",
    "factor_response",
    "marks",
    "overhead_by_turn",
    "paired_differences",
    "resolve_against_tokens",
    "resolve_rates",
    "save",
    "stacked_causes",
    "style",
]
