"""The page of a study or of a comparison: one HTML file, and a page for each trace beside it."""

from __future__ import annotations

from rlm_loop.report.study.page import compare_page, study_page, write_study_page, write_trace_pages

__all__ = ["compare_page", "study_page", "write_study_page", "write_trace_pages"]
