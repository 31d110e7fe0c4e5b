"""A folder of runs, studies and sessions of the meter as pages: a table of all episodes, and a page for each."""

from __future__ import annotations

from rlm_loop.report.view.server import viewing

__all__ = ["viewing"]
