"""Tokens, cost, seconds, steps: how many times as much an arm uses, task by task."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from rlm_loop.study.statistics.clusters import Floats, sizes, sums

#: Up to so many clusters all changes of sign are counted.
_COUNTED = 15


def mean_interval(
    values: Any, codes: NDArray[np.intp], alpha: float = 0.05, *, resamples: int = 4000, seed: int = 0
) -> tuple[Floats, Floats, Floats]:
    """The mean of the last axis and its BCa bootstrap interval; whole clusters are drawn.

    B. Efron, JASA 82 (1987).  Quantiles are taken a little further out, as t to normal, since a bootstrap of few
    clusters is too narrow: T. Hesterberg, The American Statistician 69 (2015), "expanded".  Not a number for fewer
    than two clusters.  For logarithms of ratios, `exp` of all three is the geometric mean ratio.
    """
    every = np.asarray(values, dtype=float)
    of, groups = sizes(codes), sizes(codes).size
    mean = every.mean(axis=-1)
    if groups < 2:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    total = sums(every, codes)
    if np.ptp(total - of * mean[..., None], axis=-1).max() < 1e-12:  # nothing varies, so nothing can be drawn
        return mean, mean.copy(), mean.copy()
    data, paired, statistic = ((total,), False, np.mean)
    if of.min() != of.max():
        data, paired, statistic = (total, np.broadcast_to(of, total.shape)), True, _ratio
    else:
        data = (total / of,)
    further = float(stats.norm.sf(np.sqrt(groups / (groups - 1)) * stats.t.ppf(1 - alpha / 2, groups - 1)))
    found = stats.bootstrap(
        data,
        statistic,
        paired=paired,
        vectorized=True,
        axis=-1,
        n_resamples=resamples,
        batch=max(1, min(resamples, 5_000_000 // max(1, total.size))),
        confidence_level=1 - 2 * further,
        method="BCa",
        rng=np.random.default_rng(seed),
    )
    return mean, found.confidence_interval.low, found.confidence_interval.high


def _ratio(total: Floats, of: Floats, axis: int = -1) -> Floats:
    return total.sum(axis=axis) / of.sum(axis=axis)


def sign_flip(values: Any, codes: NDArray[np.intp], *, resamples: int = 9999, seed: int = 0) -> Floats:
    """The two-sided p of "the mean is 0": the signs of whole clusters are changed at random.

    Exact for values that are symmetric about 0 under that hypothesis, as the difference of two arms that are alike;
    all changes are counted where there are few, else `resamples` are drawn.  R. A. Fisher, The Design of Experiments
    (1935), 21; B. Phipson & G. K. Smyth, SAGMB 9 (2010) for the draws.
    """
    total = sums(values, codes)
    groups = total.shape[-1]
    seen = np.abs(total.sum(axis=-1))
    if groups <= _COUNTED:
        signs = 1 - 2.0 * ((np.arange(2**groups)[:, None] >> np.arange(groups)) & 1)
    else:
        signs = 1 - 2.0 * np.random.default_rng(seed).integers(0, 2, (resamples, groups), dtype=np.int8)
    tolerance = 1e-9 * np.abs(total).sum(axis=-1)  # sums of the same numbers in another order
    as_far = np.abs(total @ signs.T) >= (seen - tolerance)[..., None]
    exact = groups <= _COUNTED
    return as_far.mean(axis=-1) if exact else (as_far.sum(axis=-1) + 1) / (resamples + 1)
