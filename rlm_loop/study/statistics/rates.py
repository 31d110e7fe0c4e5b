"""Resolve rates: that of an arm, the difference of two on the same tasks, and whether it is the same everywhere."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from rlm_loop.study.statistics.clusters import (
    LEAST_ALPHA,
    Floats,
    codes_of,
    effective_size,
    sizes,
    sums,
    variance_of_mean,
)

#: Permuted studies held at once, times the clusters: their arrays fit into a processor's cache.
_BLOCK = 50_000
#: Permutations of a test.
_RESAMPLES = 9999


def wilson_interval(rate: Any, n: Any, alpha: float = 0.05) -> tuple[Floats, Floats]:
    """Wilson's score interval of a rate seen on `n` units, which may be an effective size.

    E. B. Wilson, JASA 22 (1927).
    """
    p, n = np.asarray(rate, dtype=float), np.asarray(n, dtype=float)
    z = ndtri(1 - max(alpha, LEAST_ALPHA) / 2)
    scale = 1 + z**2 / n
    middle = (p + z**2 / (2 * n)) / scale
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / scale
    return np.where(p <= 0, 0.0, middle - half), np.where(p >= 1, 1.0, middle + half)


def rate_interval(values: Any, codes: NDArray[np.intp], alpha: float = 0.05) -> tuple[Floats, Floats, Floats]:
    """The mean of values in 0 to 1 and its interval: Wilson's, on the effective number of units.

    `codes` are the clusters of the units; where each unit is its own, this is Wilson's interval itself.
    """
    every = np.asarray(values, dtype=float)
    n, rate = codes.size, every.mean(axis=-1)
    size = effective_size(
        variance_of_mean(every, codes), rate * (1 - rate) / max(n - 1, 1), n, sizes(codes).size, alpha
    )
    return rate, *wilson_interval(rate, size, alpha)


def wilson_by_cluster(values: Sequence[float], clusters: Sequence[Hashable]) -> tuple[float, float]:
    """The 95 % interval of `rate_interval` for values whose clusters are named; (0, 1) where there are none."""
    if not values:
        return 0.0, 1.0
    _, low, high = rate_interval(values, codes_of(clusters))
    return float(low), float(high)


def newcombe_interval(both: Any, here: Any, there: Any, neither: Any, alpha: float = 0.05) -> tuple[Floats, Floats]:
    """The interval of a difference of two paired rates: (both + here) / n - (both + there) / n.

    R. G. Newcombe, Statistics in Medicine 17 (1998) 2635, method 10: Wilson intervals of the two rates, squared and
    added, with their correlation corrected for continuity.  Counts may be scaled to an effective size.
    """
    a, b, c, d = (np.asarray(x, dtype=float) for x in (both, here, there, neither))
    n = a + b + c + d
    p1, p2 = (a + b) / n, (a + c) / n
    (l1, u1), (l2, u2) = wilson_interval(p1, n, alpha), wilson_interval(p2, n, alpha)
    cross = a * d - b * c
    cross = np.where(cross > 0, np.maximum(cross - n / 2, 0), cross)
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    phi = np.where(margins > 0, cross / np.sqrt(np.where(margins > 0, margins, 1)), 0.0)
    down1, up1, down2, up2 = p1 - l1, u1 - p1, p2 - l2, u2 - p2
    low = p1 - p2 - np.sqrt(np.maximum(down1**2 - 2 * phi * down1 * up2 + up2**2, 0))
    high = p1 - p2 + np.sqrt(np.maximum(down2**2 - 2 * phi * down2 * up1 + up1**2, 0))
    return np.maximum(low, -1), np.minimum(high, 1)


def paired_table(here: Any, there: Any) -> tuple[Floats, Floats, Floats, Floats]:
    """Count the units that both arms resolved, only `here`, only `there`, and neither."""
    h, t = np.asarray(here, dtype=float), np.asarray(there, dtype=float)
    n = h.shape[-1]
    both = (h * t).sum(axis=-1)
    wins, losses = (h * (1 - t)).sum(axis=-1), (t * (1 - h)).sum(axis=-1)
    return both, wins, losses, n - both - wins - losses


def effective_table(
    here: Any, there: Any, codes: NDArray[np.intp], alpha: float = 0.05
) -> tuple[Floats, Floats, Floats, Floats]:
    """`paired_table` scaled to the effective number of pairs, given which pairs share a cluster."""
    difference = np.asarray(here, dtype=float) - np.asarray(there, dtype=float)
    n = codes.size
    simple = difference.var(axis=-1) / max(n - 1, 1)
    size = effective_size(variance_of_mean(difference, codes), simple, n, sizes(codes).size, alpha)
    both, wins, losses, neither = (x * size / n for x in paired_table(here, there))
    return both, wins, losses, neither


def paired_difference(
    here: Any, there: Any, codes: NDArray[np.intp], alpha: float = 0.05
) -> tuple[Floats, Floats, Floats]:
    """The difference of two arms' resolve rates on the same units, with Newcombe's interval, by cluster."""
    difference = np.asarray(here, dtype=float) - np.asarray(there, dtype=float)
    table = effective_table(here, there, codes, alpha)
    return difference.mean(axis=-1), *newcombe_interval(*table, alpha=alpha)


def mcnemar(here: Any, there: Any, codes: NDArray[np.intp]) -> float:
    """The exact two-sided p of "both arms resolve equally often".

    The pairs of one cluster change sign together, and all sign changes are equally likely; for pairs that are their
    own clusters this is the exact test of Q. McNemar, Psychometrika 12 (1947).  All sign changes are counted (by
    convolution), none is drawn.
    """
    difference = np.asarray(here, dtype=float) - np.asarray(there, dtype=float)
    moved = np.abs(np.rint(sums(difference, codes))).astype(int)
    seen = abs(int(np.rint(difference.sum())))
    moved = moved[moved > 0]
    if moved.size and moved.max() == 1:
        return max(sign_test((moved.size + seen) // 2, (moved.size - seen) // 2), sys.float_info.min)
    chance = np.ones(1)  # of the sums -total, ..., total
    for step in moved:
        wider = np.zeros(chance.size + 2 * step)
        wider[: chance.size] += chance / 2
        wider[2 * step :] += chance / 2
        chance = wider
    total = (chance.size - 1) // 2
    p = float(min(1.0, chance[np.abs(np.arange(-total, total + 1)) >= seen].sum()))
    return max(p, sys.float_info.min)  # below what a float can hold, but never 0


def sign_test(here: int, there: int) -> float:
    """The exact two-sided p of McNemar's test: `here` pairs changed one way, `there` the other; 1 where none changed.

    Pairs that did not change say nothing.  Q. McNemar, Psychometrika 12 (1947).
    """
    from scipy.stats import binomtest

    return float(binomtest(here, here + there).pvalue) if here + there else 1.0


def heterogeneity_p(differences: Any, codes: NDArray[np.intp], groups: NDArray[np.intp]) -> float:
    """The p of "the mean difference is the same in all groups", by permutation of the clusters among the groups.

    `differences` are of the pairs (1: only the arm resolved, -1: only the baseline), `codes` their clusters, `groups`
    their groups; each cluster belongs to one group.  The statistic is W. G. Cochran's Q (Biometrics 10 (1954)), the sum
    of the groups' squared distances from their weighted mean, each over its variance by cluster, so that groups that
    differ in spread alone are not found different (E. Chung & J. P. Romano, Annals of Statistics 41 (2013)).  Each
    variance has one discordant pair added, without which a group of pairs that are all alike would outweigh all others.
    1 for fewer than two groups; a cluster is drawn whole.
    """
    total, size = sums(differences, codes), sizes(codes)
    home = np.zeros(total.size, dtype=np.intp)
    home[codes] = groups
    count = int(groups.max()) + 1 if groups.size else 0
    if count < 2:
        return 1.0
    seen = float(_spread(total[None, :], size[None, :], home, count)[0])
    rng = np.random.default_rng(0)
    as_far, done, block = 0, 0, max(1, _BLOCK // total.size)
    while done < _RESAMPLES:
        now = min(block, _RESAMPLES - done)
        order = rng.permuted(np.tile(np.arange(total.size), (now, 1)), axis=1)
        as_far += int((_spread(total[order], size[order], home, count) >= seen - 1e-9 * abs(seen)).sum())
        done += now
    return (as_far + 1) / (_RESAMPLES + 1)


def _spread(total: Floats, size: Floats, home: NDArray[np.intp], count: int) -> Floats:
    """Cochran's Q of each row of clusters, whose groups are `home`."""
    member = np.zeros((home.size, count))
    member[np.arange(home.size), home] = 1.0
    n = size @ member
    mean = (total @ member) / n
    residual = total - size * mean[:, home]
    clusters = member.sum(axis=0)
    variance = (residual**2 @ member * clusters / np.maximum(clusters - 1, 1) + 1) / n**2
    weight = 1 / variance
    middle = (weight * mean).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
    return (weight * (mean - middle) ** 2).sum(axis=1)
