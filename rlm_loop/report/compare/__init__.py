"""A comparison of two or more results, as sentences, tables and a page."""

from __future__ import annotations

from rlm_loop.report.compare.page import compare_page
from rlm_loop.report.compare.tables import flip_table, measure_table, said, suite_table

__all__ = ["compare_page", "flip_table", "measure_table", "said", "suite_table"]
