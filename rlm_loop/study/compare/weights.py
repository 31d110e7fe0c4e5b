"""How much each suite counts where the effects of several are pooled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from rlm_loop.study.errors import StudyError

#: As many pairs as it has; as much as any other; or a number for each suite.
Weights = Literal["pairs", "equal"] | Mapping[str, float]
BY_PAIRS: Literal["pairs"] = "pairs"


def checked_weights(weights: Weights) -> None:
    """Raises `StudyError` where these are no weights."""
    if isinstance(weights, str):
        if weights not in (BY_PAIRS, "equal"):
            raise StudyError(f'weights are "pairs", "equal" or a number for each suite, not {weights!r}')
        return
    if not weights or not all(math.isfinite(w) and w > 0 for w in weights.values()):
        raise StudyError('weights are numbers above 0 for each suite: {"humaneval/test": 0.25, "tables/test": 0.75}')


def suite_shares(weights: Weights, suites: Sequence[str]) -> dict[str, float]:
    """What each suite counts, in sum 1; `suites` are those of the pairs, one for each.

    Raises `StudyError` for a suite without a weight; one that has no pairs yet leaves its weight to the others.
    """
    there = dict.fromkeys(suites)
    if isinstance(weights, str):
        parts = {suite: float(suites.count(suite) if weights == BY_PAIRS else 1) for suite in there}
    elif without := [suite for suite in there if suite not in weights]:
        raise StudyError(f"weights name no suite {without[0]!r}; give one for each of {', '.join(there)}")
    else:
        parts = {suite: float(weights[suite]) for suite in there}
    total = sum(parts.values())
    return {suite: part / total for suite, part in parts.items()}


def pooled_by(weights: Weights) -> str:
    """Whose weights a pooled effect has, in words."""
    if isinstance(weights, str):
        return "by pairs" if weights == BY_PAIRS else "with equal weights"
    return "with weights given for each"
