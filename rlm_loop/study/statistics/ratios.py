"""Tokens, cost, seconds, steps: how many times as much an arm uses, task by task."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from rlm_loop.study.statistics.clusters import Floats, sizes, sums
from rlm_loop.study.statistics.multiple_testing import smallest_level

#: Draws of the bootstrap, and changes of sign.
_RESAMPLES, _FLIPS = 4000, 9999
#: Up to so many clusters all changes of sign are counted.
_COUNTED = 15
#: Sums of the same numbers in another order differ by less than this share of them.
_ROUNDING = 1e-9


def mean_interval(
    values: Any, codes: NDArray[np.intp], alpha: float = 0.05, *, resamples: int = _RESAMPLES, flips: int = _FLIPS
) -> tuple[Floats, Floats, Floats]:
    """The mean of the last axis and its interval: from BCa bootstrap and `flip_interval`, whichever reaches further.

    BCa follows skewness but is too narrow where tails are heavy or many values are alike; the means that sign flips do
    not reject are right for any symmetric shape but do not follow skewness.  Together they cover both, and the
    interval never excludes a mean that the test does not.  For logarithms of ratios, `exp` of all three is the
    geometric mean ratio.  Where all values are alike the interval is that value; where the clusters are too few for
    any claim (fewer than 6 at 95 %) it is not a number.
    """
    total, of = sums(values, codes), sizes(codes)
    mean = np.asarray(total.sum(axis=-1) / of.sum())
    flip_low, flip_high = flip_interval(values, codes, alpha, resamples=flips)
    low, high = np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    if np.isinf(flip_low).all():
        return mean, low, high
    varies = np.ptp(total - of * mean[..., None], axis=-1) > 1e-12  # where nothing does, nothing can be drawn
    if varies.any():
        low[varies], high[varies] = bca_interval(total[varies], of, resamples, 0)(alpha)
    low = np.where(varies, np.fmin(low, flip_low), mean)
    high = np.where(varies, np.fmax(high, flip_high), mean)
    return mean, low, high


def mean_p(values: Any, codes: NDArray[np.intp]) -> float:
    """The two-sided p of "the mean is 0" of one study, by sign flips and BCa: what `mean_interval` goes with.

    It is at most alpha exactly where the interval of level 1 - alpha excludes 0, as both reach as far as they do.
    """
    total, of = sums(values, codes), sizes(codes)
    least = float(sign_flip(values, codes))
    if np.ptp(total - of * total.sum() / of.sum()) <= 1e-12:
        return least
    bounds = bca_interval(total, of, _RESAMPLES, 0)

    def excludes(alpha: float) -> bool:
        low, high = (float(x) for x in bounds(alpha))
        return not (low <= 0 <= high)

    return smallest_level(least, excludes)


def bca_interval(total: Floats, of: Floats, resamples: int, seed: int) -> Callable[[float], tuple[Floats, Floats]]:
    """The BCa bootstrap interval of the mean at each alpha, from the sums and sizes of clusters, which are drawn whole.

    B. Efron, JASA 82 (1987), with the quantiles of `expanded_tail`.  Draws, bias and acceleration are made once: scipy
    makes them again for each level, and a p value asks for some thirty.
    """
    groups = of.size
    left_out = (total.sum(axis=-1, keepdims=True) - total) / np.maximum(of.sum() - of, 1e-9)
    mean = total.sum(axis=-1, keepdims=True) / of.sum()
    drawn = _sum(total, cluster_draws(groups, resamples, seed))
    drawn /= np.maximum(_sum(of, cluster_draws(groups, resamples, seed)), 1e-9)
    near = _ROUNDING * np.abs(mean)
    below = (np.count_nonzero(drawn < mean - near, axis=-1) + np.count_nonzero(drawn <= mean + near, axis=-1)) / 2
    bias = special.ndtri(below / resamples)
    apart = left_out.mean(axis=-1, keepdims=True) - left_out
    acceleration = (apart**3).sum(axis=-1) / (6 * (apart**2).sum(axis=-1) ** 1.5)
    drawn = np.sort(drawn.reshape(-1, resamples), axis=-1)
    rows = np.arange(len(drawn))

    def at(alpha: float) -> tuple[Floats, Floats]:
        tail = special.ndtri(expanded_tail(groups, alpha))
        z = bias + np.array([tail, -tail]).reshape(2, *[1] * bias.ndim)
        place = (special.ndtr(bias + z / (1 - acceleration * z)) * (resamples - 1)).reshape(2, -1)
        under = np.minimum(np.where(np.isnan(place), 0.0, place).astype(int), resamples - 2)
        low, high = drawn[rows, under], drawn[rows, under + 1]
        first, last = (low + (high - low) * (place - under)).reshape(2, *bias.shape)
        return first, last

    return at


@functools.lru_cache(maxsize=2)
def cluster_draws(groups: int, resamples: int, seed: int) -> Floats:
    """Draw clusters: how often each is taken, a row a resample, the same for all measures of as many clusters."""
    drawn = np.random.default_rng(seed).integers(0, groups, (resamples, groups))
    drawn += np.arange(resamples)[:, None] * groups
    return np.bincount(drawn.ravel(), minlength=resamples * groups).reshape(resamples, groups).astype(float)


def _sum(values: Floats, counts: Floats) -> Floats:
    """The sum of the values for each row of counts."""
    # of one study without BLAS, whose threads wait for each other longer than the sums take where cores are busy
    return np.einsum("j,ij->i", values, counts) if values.ndim == 1 else values @ counts.T


def bootstrap(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % percentile bootstrap interval of a mean, always the same; `None` for fewer than two values.

    B. Efron, Annals of Statistics 7 (1979), with the percentiles of `expanded_tail`.  It is for figures, which show few
    values too: BCa can turn round where they are fewer than six.  Where most values are alike it covers less than 95 %
    (`mean_interval` does not).
    """
    if len(values) < 2:
        return None
    found = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=2000,
        confidence_level=1 - 2 * expanded_tail(len(values), 0.05),
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return float(found.low), float(found.high)


def expanded_tail(n: int, alpha: float) -> float:
    """The share of bootstrap means of n values beyond each end of an interval of 1 - alpha: alpha / 2 for many values.

    It is less for few, as t to normal, since the bootstrap of few is too narrow: T. Hesterberg, The American
    Statistician 69 (2015), "expanded".
    """
    return float(special.ndtr(np.sqrt(n / (n - 1)) * special.stdtrit(n - 1, alpha / 2)))


def sign_flip(values: Any, codes: NDArray[np.intp], *, resamples: int = _FLIPS) -> Floats:
    """The two-sided p of "the mean is 0": the signs of whole clusters are changed at random.

    Exact for values that are symmetric about 0 under that hypothesis, as the difference of two arms that are alike;
    all changes are counted where there are few, else `resamples` are drawn.  R. A. Fisher, The Design of Experiments
    (1935), 21; B. Phipson & G. K. Smyth, SAGMB 9 (2010) for the draws.
    """
    total = sums(values, codes)
    seen = total.sum(axis=-1, keepdims=True)
    tolerance = _ROUNDING * np.abs(total).sum(axis=-1, keepdims=True)
    as_far = np.abs(seen - 2 * _sum(total, _changes(total.shape[-1], resamples))) >= np.abs(seen) - tolerance
    return (as_far.sum(axis=-1) + 1) / (as_far.shape[-1] + 1)


def flip_interval(
    values: Any, codes: NDArray[np.intp], alpha: float = 0.05, *, resamples: int = _FLIPS
) -> tuple[Floats, Floats]:
    """The lowest and the highest mean that `sign_flip` does not reject at `alpha`, with the same draws.

    A change of signs parts the clusters into those that keep their sign and those that change it, and it counts
    against a mean exactly where that mean is not between the means of the two parts.  So the ends are quantiles of
    means of random parts: J. A. Hartigan, JASA 64 (1969) 1303, "typical values".  Its coverage is exact for values that
    are symmetric about their mean, whatever their tails.  Infinite where no change of signs could reject (fewer than
    6 clusters at 95 %).
    """
    total, of = sums(values, codes), sizes(codes)
    changes, n = _changes(of.size, resamples), of.sum()
    changed, part = _sum(total, changes), _sum(of, changes)
    scale = _ROUNDING * np.abs(total).sum(axis=-1, keepdims=True)
    kept, rest = total.sum(axis=-1, keepdims=True) - changed, n - part
    rest = np.where(rest <= _ROUNDING * n, 0.0, rest)  # of floats the parts of a whole leave a rest
    with np.errstate(divide="ignore", invalid="ignore"):
        one, other = changed / part, np.where((rest == 0) & (np.abs(kept) <= scale), np.nan, kept / rest)
    whole = np.isnan(one) | np.isnan(other)  # no change at all, which speaks against no mean
    lower = np.where(whole, -np.inf, np.minimum(one, other))
    upper = np.where(whole, np.inf, np.maximum(one, other))
    rank = int(alpha * (part.size + 1) + _ROUNDING)  # so many draws have to reach as far, for p to be above alpha
    if rank == 0:
        return np.full(total.shape[:-1], -np.inf), np.full(total.shape[:-1], np.inf)
    tolerance = _ROUNDING * np.abs(total).sum(axis=-1) / n
    low = np.partition(lower, rank - 1, axis=-1)[..., rank - 1]
    high = np.partition(upper, part.size - rank, axis=-1)[..., part.size - rank]
    return low - tolerance, high + tolerance


@functools.lru_cache(maxsize=2)
def _changes(groups: int, resamples: int) -> Floats:
    """The clusters that change their sign, a row for each change; all changes where they are few, else draws.

    They are the same for all measures of as many tasks.  "No cluster changes" is not among all changes, and their last
    cluster keeps its sign, since a change and its reverse are as far from 0.
    """
    if groups <= _COUNTED:
        return ((np.arange(1, 2 ** max(groups - 1, 0))[:, None] >> np.arange(groups)) & 1).astype(float)
    return np.random.default_rng(0).integers(0, 2, (resamples, groups), dtype=np.int8).astype(float)
