"""Results of anybody's as ours: tables, evaluation logs and job folders of other tools, and our studies.

>>> load_results("logs/before.eval", "logs/after.eval").compare()   # doctest: +SKIP
"""

from __future__ import annotations

from rlm_loop.formats.results.loaded import Loaded, load_results, load_sources

__all__ = ["Loaded", "load_results", "load_sources"]
