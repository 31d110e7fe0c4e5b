"""Six figures of studies and runs: one style, each a function from a frame, each with an alternative text.

>>> from rlm_loop.report.figures import resolve_rates, save                # doctest: +SKIP
>>> save(resolve_rates(load_study("runs/mine").frame()), "rates.svg")      # doctest: +SKIP
"""

from __future__ import annotations

from rlm_loop.report.figures.causes import stacked_causes
from rlm_loop.report.figures.colours import cause_colour
from rlm_loop.report.figures.differences import paired_differences
from rlm_loop.report.figures.factor import factor_response
from rlm_loop.report.figures.overhead_by_turn import overhead_by_turn
from rlm_loop.report.figures.pareto import resolve_against_tokens
from rlm_loop.report.figures.rates import resolve_rates
from rlm_loop.report.figures.saving import alt_text, data_uri, save
from rlm_loop.report.figures.style import marks, style

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
