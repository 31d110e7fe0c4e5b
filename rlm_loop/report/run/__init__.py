"""A page to read a run: one HTML file, with no network, made from a trace.

>>> from rlm_loop.report.run import run_page                                         # doctest: +SKIP
>>> Path("run.html").write_text(run_page("run.jsonl"), encoding="utf-8")               # doctest: +SKIP
"""

from __future__ import annotations

from rlm_loop.report.run.page import run_page

__all__ = ["run_page"]
