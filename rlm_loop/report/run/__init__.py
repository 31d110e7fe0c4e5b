"""A page to read a run: one HTML file, with no network, made from a trace."""

from __future__ import annotations

from rlm_loop.report.run.page import run_page

__all__ = ["run_page"]
