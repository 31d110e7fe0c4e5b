"""Tokens, cost, seconds, steps: how many times as much an arm uses, task by task."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from rlm_loop.study.statistics.clusters import Floats, sizes, sums

#: Up to so many clusters all changes of sign are counted.
_COUNTED = 15
#: So many changes of sign are summed at once.
_BLOCK = 1000
#: Sums of the same numbers in another order differ by less than this share of them.
_ROUNDING = 1e-9


def mean_interval(
    values: Any,
    codes: NDArray[np.intp],
    alpha: float = 0.05,
    *,
    resamples: int = 4000,
    flips: int = 9999,
    seed: int = 0,
) -> tuple[Floats, Floats, Floats]:
    """The mean of the last axis and its interval: from BCa bootstrap and `flip_interval`, whichever reaches further.

    BCa follows skewness but is too narrow where tails are heavy or many values are alike; the means that sign flips do
    not reject are right for any symmetric shape but do not follow skewness.  Together they cover both, and the
    interval never excludes a mean that the test does not.  For logarithms of ratios, `exp` of all three is the
    geometric mean ratio.  Where all values are alike the interval is that value; where the clusters are too few for
    any claim (fewer than 6 at 95 %) it is not a number.
    """
    every = np.asarray(values, dtype=float)
    mean = every.mean(axis=-1)
    flip_low, flip_high = flip_interval(every, codes, alpha, resamples=flips, seed=seed)
    low, high = np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    if np.isinf(flip_low).all():
        return mean, low, high
    total, of = sums(every, codes), sizes(codes)
    varies = np.ptp(total - of * mean[..., None], axis=-1) > 1e-12  # where nothing does, nothing can be drawn
    if varies.any():
        low[varies], high[varies] = bca_interval(total[varies], of, alpha, resamples, seed)
    low = np.where(varies, np.fmin(low, flip_low), mean)
    high = np.where(varies, np.fmax(high, flip_high), mean)
    return mean, low, high


def bca_interval(total: Floats, of: Floats, alpha: float, resamples: int, seed: int) -> tuple[Floats, Floats]:
    """The BCa bootstrap interval of the mean, from the sums and the sizes of clusters, which are drawn whole.

    B. Efron, JASA 82 (1987).  Quantiles are taken a little further out, as t to normal, since a bootstrap of few
    clusters is too narrow: T. Hesterberg, The American Statistician 69 (2015), "expanded".
    """
    groups = of.size
    if of.min() != of.max():
        data, paired, statistic = (total, np.broadcast_to(of, total.shape)), True, _ratio
    else:
        data, paired, statistic = (total / of,), False, np.mean
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
    return found.confidence_interval.low, found.confidence_interval.high


def _ratio(total: Floats, of: Floats, axis: int = -1) -> Floats:
    return total.sum(axis=axis) / of.sum(axis=axis)


def sign_flip(values: Any, codes: NDArray[np.intp], *, resamples: int = 9999, seed: int = 0) -> Floats:
    """The two-sided p of "the mean is 0": the signs of whole clusters are changed at random.

    Exact for values that are symmetric about 0 under that hypothesis, as the difference of two arms that are alike;
    all changes are counted where there are few, else `resamples` are drawn.  R. A. Fisher, The Design of Experiments
    (1935), 21; B. Phipson & G. K. Smyth, SAGMB 9 (2010) for the draws.
    """
    total = sums(values, codes)
    seen = total.sum(axis=-1, keepdims=True)
    tolerance = _ROUNDING * np.abs(total).sum(axis=-1, keepdims=True)
    as_far = np.abs(seen - 2 * _changed(total, resamples, seed)) >= np.abs(seen) - tolerance
    return (as_far.sum(axis=-1) + 1) / (as_far.shape[-1] + 1)


def flip_interval(
    values: Any, codes: NDArray[np.intp], alpha: float = 0.05, *, resamples: int = 9999, seed: int = 0
) -> tuple[Floats, Floats]:
    """The lowest and the highest mean that `sign_flip` does not reject at `alpha`, with the same draws.

    A change of signs parts the clusters into those that keep their sign and those that change it, and it counts
    against a mean exactly where that mean is not between the means of the two parts.  So the ends are quantiles of
    means of random parts: J. A. Hartigan, JASA 64 (1969) 1303, "typical values".  Its coverage is exact for values that
    are symmetric about their mean, whatever their tails.  Infinite where no change of signs could reject (fewer than
    6 clusters at 95 %).
    """
    total, of = sums(values, codes), sizes(codes)
    changed, part, n = _changed(total, resamples, seed), _changed(of, resamples, seed), of.sum()
    kept = total.sum(axis=-1, keepdims=True) - changed
    with np.errstate(divide="ignore", invalid="ignore"):
        one, other = changed / part, kept / (n - part)
    whole = (part == 0) | (part == n)  # no change at all, which speaks against no mean
    lower = np.where(whole, -np.inf, np.minimum(one, other))
    upper = np.where(whole, np.inf, np.maximum(one, other))
    rank = int(alpha * (part.size + 1) + _ROUNDING)  # so many draws have to reach as far, for p to be above alpha
    if rank == 0:
        return np.full(total.shape[:-1], -np.inf), np.full(total.shape[:-1], np.inf)
    tolerance = _ROUNDING * np.abs(total).sum(axis=-1) / n
    low = np.partition(lower, rank - 1, axis=-1)[..., rank - 1]
    high = np.partition(upper, part.size - rank, axis=-1)[..., part.size - rank]
    return low - tolerance, high + tolerance


def _changed(total: Floats, resamples: int, seed: int) -> Floats:
    """The sum of the clusters that change their sign, for each change; all changes where they are few, else draws.

    "No cluster changes" is not among all changes, and their last cluster keeps its sign, since a change and its reverse
    are as far from 0.
    """
    groups = total.shape[-1]
    if groups <= _COUNTED:
        which = (np.arange(1, 2 ** max(groups - 1, 0))[:, None] >> np.arange(groups)) & 1
    else:
        which = np.random.default_rng(seed).integers(0, 2, (resamples, groups), dtype=np.int8)
    starts = range(0, max(1, len(which)), _BLOCK)  # in blocks, as so many floats would not fit for thousands of tasks
    return np.concatenate([total @ which[at : at + _BLOCK].T.astype(float) for at in starts], axis=-1)
