"""Is an arm no worse than the baseline by more than a margin?  The claim that a cheaper loop has to support."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import stats

from rlm_loop.study.statistics.clusters import Floats

#: Up to so many pairs the p value is exact; beyond it the normal approximation is off by less than 0.001.
_EXACT = 400
#: Shares of discordant pairs at which the exact p is looked for, between the margin and all pairs.
_SHARES = 160
#: Around so many peaks of these it is looked for more finely, at so many shares.
_PEAKS, _BETWEEN = 4, 41


def score_statistic(here: Any, there: Any, n: Any, margin: float) -> Floats:
    """Tango's score statistic of "the rate here is lower by `margin`"; large where it is not.

    `here` and `there` count the pairs that only one of the arms resolved, of `n`; counts may be scaled to an effective
    size.  T. Tango, Statistics in Medicine 17 (1998) 891; the same as J. Nam, Biometrics 53 (1997) 1422.
    """
    b, c, n = (np.asarray(x, dtype=float) for x in (here, there, n))
    shift = -margin
    linear = -(b + c) + shift * (2 * n - b + c)
    root = np.sqrt(np.maximum(linear**2 + 8 * n * c * shift * (1 - shift), 0))
    q = (root - linear) / (4 * n)  # the likeliest share of pairs that only the baseline resolves, at the margin
    spread = np.sqrt(np.maximum(n * (2 * q + shift * (1 - shift)), 0))
    distance = b - c - n * shift
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(spread > 0, distance / spread, np.where(distance > 0, np.inf, 0.0))


@lru_cache(maxsize=64)
def noninferiority(here: float, there: float, n: float, margin: float) -> float:
    """Twice the one-sided p of non-inferiority: at most alpha means shown at the usual one-sided alpha / 2.

    Doubled so that one alpha serves this claim and two-sided ones, as a two-sided 95 % interval does.  Up to 400 pairs
    it is the exact unconditional test on the score statistic, the largest p over all shares of discordant pairs: H.
    Hsueh, J. Liu & J. J. Chen, Biometrics 57 (2001) 478; the approximate test errs up to 0.0026 too often in 0.025.
    For an effective size that is not whole, the whole one below it is taken.
    """
    seen = float(score_statistic(here, there, n, margin))
    tail = stats.norm.sf(seen) if n > _EXACT else exact_tail(seen, max(1, int(n + 1e-9)), margin)
    return float(min(1.0, max(2 * tail, sys.float_info.min)))  # below what a float can hold, but never 0


def exact_tail(seen: float, n: int, margin: float) -> float:
    """The chance of a score statistic of at least `seen` in n pairs at the margin, at the worst share of discord."""
    statistic = _statistics(n, margin)
    sizes = np.arange(n + 1)
    enough = (statistic >= seen - 1e-9).sum(axis=1)  # it grows with `here` among pairs of the same discord

    def tail(shares: Floats) -> Floats:
        chance_here = ((shares - margin) / 2 / shares)[:, None]
        tails = stats.binom.sf(sizes - enough, sizes, chance_here)
        return (stats.binom.pmf(sizes, n, shares[:, None]) * tails).sum(axis=1)

    shares = margin + (1 - margin) * np.linspace(0, 1, _SHARES) ** 2
    coarse = tail(shares)
    beside = np.concatenate([[-1.0], coarse, [-1.0]])
    peaks = np.flatnonzero((coarse >= beside[:-2]) & (coarse >= beside[2:]))
    worst = peaks[np.argsort(coarse[peaks])[-_PEAKS:]]
    below, above = shares[np.maximum(worst - 1, 0)], shares[np.minimum(worst + 1, _SHARES - 1)]
    fine = np.linspace(below, above, _BETWEEN).ravel()
    return float(max(coarse.max(), tail(fine).max()))


@lru_cache(maxsize=8)
def _statistics(n: int, margin: float) -> Floats:
    """The statistic for each number of discordant pairs (rows) and of those that only the arm resolved."""
    discordant, here = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    table = score_statistic(here, np.maximum(discordant - here, 0), n, margin)
    return np.where(here <= discordant, table, -np.inf)
