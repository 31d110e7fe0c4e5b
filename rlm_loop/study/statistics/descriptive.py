"""Means, percentiles, shares and sums in which one value that is not known makes the figure not known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def mean(values: Iterable[float | None]) -> float | None:
    """The mean; `None` where there is no value or one is not known."""
    known = _known(values)
    return sum(known) / len(known) if known else None


def percentile(values: Iterable[float | None], q: float) -> float | None:
    """The q-th percentile (0 to 100), linear between ranks; `None` where there is no value or one is not known."""
    known = _known(values)
    if not known:
        return None
    at = (len(known) - 1) * q / 100
    low, high = (sorted(known)[round_(at)] for round_ in (math.floor, math.ceil))
    return low + (high - low) * (at - math.floor(at))


def ratio(part: float | None, whole: float | None) -> float | None:
    """A share; `None` where one of them is not known or the whole is zero."""
    return None if part is None or not whole else part / whole


def total(values: Iterable[float | None]) -> float | None:
    """The sum; `None` where one value is not known."""
    every = list(values)
    return sum(v for v in every if v is not None) if None not in every else None


def _known(values: Iterable[float | None]) -> Sequence[float] | list[float]:
    every = list(values)
    return [] if None in every else [v for v in every if v is not None]
