"""The few statistics that a table of a study needs, in plain Python: no figure is invented where one is not known."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence


def wilson(successes: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's score interval of a rate (95 % by default); (0, 1) where nothing was tried.

    E. B. Wilson, JASA 22 (1927).  It stays inside 0 to 1 and is sound for small n, where the normal
    approximation is not.
    """
    if n == 0:
        return 0.0, 1.0
    rate, scale = successes / n, 1 + z * z / n
    middle = (rate + z * z / (2 * n)) / scale
    half = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / scale
    # none and all have the bound itself, which rounding would miss by a hair (and then an error bar is negative)
    return 0.0 if successes == 0 else middle - half, 1.0 if successes == n else middle + half


def mean(values: Iterable[float | None]) -> float | None:
    """The mean; `None` where there is no value or one is not known."""
    known = _known(values)
    return sum(known) / len(known) if known else None


def percentile(values: Iterable[float | None], q: float) -> float | None:
    """The q-th percentile (0 to 100), linear between ranks; `None` where there is no value or one is not known."""
    known = _known(values)
    if not known:
        return None
    known = sorted(known)
    at = (len(known) - 1) * q / 100
    low = math.floor(at)
    high = min(low + 1, len(known) - 1)
    return known[low] + (known[high] - known[low]) * (at - low)


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


def sign_test(here: int, there: int) -> float:
    """The exact two-sided p of McNemar's test: `here` pairs changed one way, `there` the other.

    Pairs that did not change say nothing.  1 where none changed.  Q. McNemar, Psychometrika 12 (1947).
    """
    n = here + there
    tail = sum(math.comb(n, k) for k in range(min(here, there) + 1))
    return min(1.0, 2 * tail / 2**n)


def bootstrap(values: Sequence[float], *, resamples: int = 2000, seed: int = 0) -> tuple[float, float] | None:
    """The 95 % percentile bootstrap interval of a mean, the same for the same seed; `None` for fewer than two values.

    B. Efron, Annals of Statistics 7 (1979).
    """
    if len(values) < 2:
        return None
    draw = random.Random(seed)
    means = [sum(draw.choices(values, k=len(values))) / len(values) for _ in range(resamples)]
    low, high = percentile(means, 2.5), percentile(means, 97.5)
    return None if low is None or high is None else (low, high)
