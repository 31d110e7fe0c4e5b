"""Tasks of one repository succeed and fail together: sums by cluster, design effects, effective sample sizes.

Everything here works on the last axis, so that thousands of simulated studies are one call.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit  # the t quantiles of scipy.stats, without the seconds that importing that takes

Floats = NDArray[np.float64]


def codes_of(labels: Sequence[Hashable]) -> NDArray[np.intp]:
    """Labels as numbers 0, 1, ... in the order of their first appearance."""
    order = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    return np.array([order[label] for label in labels], dtype=np.intp)


def sums(values: Any, codes: NDArray[np.intp]) -> Floats:
    """The sum of each cluster's values along the last axis."""
    every = np.asarray(values, dtype=float)
    groups = int(codes.max()) + 1 if codes.size else 0
    if groups == codes.size:  # every unit its own cluster
        return every[..., np.argsort(codes, kind="stable")]
    member = np.zeros((codes.size, groups))
    member[np.arange(codes.size), codes] = 1.0
    return every @ member


def sizes(codes: NDArray[np.intp]) -> Floats:
    """The number of units in each cluster."""
    return np.bincount(codes).astype(float)


def variance_of_mean(values: Any, codes: NDArray[np.intp]) -> Floats:
    """The variance of the mean of all units, allowing for any correlation inside a cluster.

    The linearised ratio estimator over K clusters with its factor K / (K - 1): W. G. Cochran, Sampling Techniques
    (1977), 11.8; for paired binary data N. A. Obuchowski, Statistics in Medicine 17 (1998).  Units that are their own
    clusters give the usual s^2 / n.  Not a number for fewer than two clusters.
    """
    every, of = np.asarray(values, dtype=float), sizes(codes)
    total, groups = of.sum(), of.size
    if groups < 2:
        return np.full(every.shape[:-1], np.nan)
    by_cluster = sums(every, codes)
    residual = by_cluster - of * (by_cluster.sum(axis=-1, keepdims=True) / total)
    return (residual**2).sum(axis=-1) / total**2 * groups / (groups - 1)


#: Smallest alpha of which floating point tells 1 - alpha / 2 well from 1; intervals take a smaller one for it.
LEAST_ALPHA = 1e-15


def effective_size(variance: Any, simple: Any, n: int, clusters: int, alpha: float = 0.05) -> Floats:
    """Return how many independent units are worth as much as `n` units in `clusters` clusters.

    `variance` is that of the mean by cluster, `simple` what it would be for n independent units; a design
    effect below 1 is taken for chance.  The factor of t quantiles pays
    for a variance that was learnt from few clusters.  E. L. Korn & B. I. Graubard, Survey Methodology 24 (1998).
    Where nothing varies, or there is one cluster, nothing is known of how alike the units of a cluster are: each
    cluster then counts as one unit, as it should for seeds of a task that all end in the same way.
    """
    variance, simple = np.asarray(variance, dtype=float), np.asarray(simple, dtype=float)
    if clusters < 2:
        return np.full(simple.shape, float(clusters))
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(variance > 0, n * simple / variance, np.inf)
    size = np.minimum(size, n)
    if clusters < n:
        alpha = max(alpha, LEAST_ALPHA)
        size = size * (stdtrit(n - 1, 1 - alpha / 2) / stdtrit(clusters - 1, 1 - alpha / 2)) ** 2
    return np.where((variance <= 0) & (simple <= 0), float(clusters), size)
