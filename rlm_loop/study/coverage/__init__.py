"""What of a long context was seen, by which call, and why an answer went wrong.

>>> from rlm_loop.study.coverage import coverage_of                       # doctest: +SKIP
>>> print(coverage_of(context, "run.jsonl"))                        # doctest: +SKIP
>>> coverage_of(context, "run.jsonl").seen(10_000, 10_060)          # doctest: +SKIP
"""

from __future__ import annotations

from rlm_loop.hints.renamed import old_name
from rlm_loop.study.coverage.coverage import Coverage, CoveredRange, coverage_of
from rlm_loop.study.coverage.diagnose import REASONS, Diagnosis, Reason, diagnose
from rlm_loop.study.coverage.lineage import Lineage, Link, lineage_of
from rlm_loop.study.coverage.texts import READ, Channel, CoverageError

__all__ = [
    "READ",
    "REASONS",
    "Channel",
    "Coverage",
    "CoverageError",
    "CoveredRange",
    "Diagnosis",
    "Lineage",
    "Link",
    "Reason",
    "coverage_of",
    "diagnose",
    "lineage_of",
]


def __getattr__(name: str) -> object:
    if name == "Span":
        return old_name("rlm_loop.study.coverage.Span", "CoveredRange", CoveredRange)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
