"""What of a long context was seen, by which call, and why an answer went wrong.

>>> from rlm_loop.study.coverage import coverage_of                       # doctest: +SKIP
>>> print(coverage_of(context, "run.jsonl"))                        # doctest: +SKIP
>>> coverage_of(context, "run.jsonl").seen(10_000, 10_060)          # doctest: +SKIP
"""

from __future__ import annotations

from rlm_loop.study.coverage.coverage import Coverage, Span, coverage_of
from rlm_loop.study.coverage.diagnose import REASONS, Diagnosis, Reason, diagnose
from rlm_loop.study.coverage.lineage import Lineage, Link, lineage_of
from rlm_loop.study.coverage.shown import READ, Channel
from rlm_loop.study.coverage.source import CoverageError

__all__ = [
    "READ",
    "REASONS",
    "Channel",
    "Coverage",
    "CoverageError",
    "Diagnosis",
    "Lineage",
    "Link",
    "Reason",
    "Span",
    "coverage_of",
    "diagnose",
    "lineage_of",
]
