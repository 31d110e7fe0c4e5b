"""The few statistics that a table of a study needs, in plain Python: no figure is invented where one is not known."""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterable, Sequence
from statistics import NormalDist


def wilson(successes: float, n: float, z: float = 1.959964) -> tuple[float, float]:
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


def wilson_by_cluster(values: Sequence[float], clusters: Sequence[Hashable]) -> tuple[float, float]:
    """Wilson's 95 % interval of the mean of values in 0 to 1, on as many units as they are worth; (0, 1) for none.

    `clusters` says which values belong together: ten seeds of one task that all end alike are worth one.  The design
    effect is that of the cluster sums, with t quantiles for few clusters: E. L. Korn & B. I. Graubard, Survey
    Methodology 24 (1998).  Where each value is its own cluster this is Wilson's interval; in plain Python the same as
    `rate_interval`.
    """
    n, of = len(values), dict.fromkeys(clusters)
    if len(of) == n:
        return wilson(sum(values), n)
    rate, k = sum(values) / n, len(of)
    beyond = dict.fromkeys(of, 0.0)
    for value, label in zip(values, clusters, strict=True):
        beyond[label] += value - rate
    variance = sum(b * b for b in beyond.values()) / n**2 * k / max(k - 1, 1)
    simple = rate * (1 - rate) / (n - 1)
    if k < 2 or simple <= 0:  # nothing is known of how alike the values of a cluster are
        size = float(k)
    else:
        size = (
            min(n * simple / variance if variance > 0 else math.inf, n) * (t_quantile(n - 1) / t_quantile(k - 1)) ** 2
        )
    return wilson(rate * size, size)


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

    B. Efron, Annals of Statistics 7 (1979).  Percentiles are taken further out the fewer values there are, as t to
    normal, since the bootstrap of few is too narrow: T. Hesterberg, The American Statistician 69 (2015), "expanded".
    Where most values are alike it covers less than 95 % all the same (`mean_interval` does not, but needs scipy).
    """
    if len(values) < 2:
        return None
    draw = random.Random(seed)
    means = [sum(draw.choices(values, k=len(values))) / len(values) for _ in range(resamples)]
    beyond = 100 * expanded_tail(len(values))
    low, high = percentile(means, beyond), percentile(means, 100 - beyond)
    return None if low is None or high is None else (low, high)


def expanded_tail(n: int) -> float:
    """The share of bootstrap means of n values that lies beyond each end of a 95 % interval: 0.025 for many values."""
    return NormalDist().cdf(-math.sqrt(n / (n - 1)) * t_quantile(n - 1))


def t_quantile(df: int) -> float:
    """How far a t of `df` degrees of freedom lies from 0 in all but 5 of 100 cases."""
    low, high = 0.0, 1000.0
    for _ in range(60):  # by halving
        middle = (low + high) / 2
        low, high = (middle, high) if _inside(middle, df) < 0.95 else (low, middle)
    return low


def _inside(t: float, df: int) -> float:
    """The chance that a t of `df` degrees of freedom lies between -t and t.

    M. Abramowitz & I. Stegun, Handbook of Mathematical Functions (1964), 26.7.3 and 26.7.4.
    """
    angle = math.atan(t / math.sqrt(df))
    term = math.cos(angle) if df % 2 else 1.0
    series = 0.0 if df == 1 else term
    for k in range(2 + df % 2, df - 1, 2):
        term *= math.cos(angle) ** 2 * (k - 1) / k
        series += term
    return 2 / math.pi * (angle + math.sin(angle) * series) if df % 2 else math.sin(angle) * series
