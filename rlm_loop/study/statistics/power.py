"""The power of a study of n pairs to show a claim, and the pairs that it would need."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special, stats

#: No study is told to be larger than this; beyond it the claim is out of reach.
MOST = 1_000_000


def power_of_rate(
    n: float, *, discordant: float, difference: float = 0.0, margin: float = 0.03, alpha: float = 0.05
) -> float:
    """The chance that n pairs show "no more than `margin` fewer resolved", at one-sided alpha / 2.

    `discordant` is the share of pairs that just one arm resolves, `difference` the true difference of the rates.  The
    normal approximation with the variance at the margin for the test and the true one for the power: J. Nam,
    Biometrics 53 (1997) 1422.  Where few pairs are discordant the true power is up to 4 points higher.  `margin=0`
    gives the power of McNemar's exact test to show that the arms differ, in the direction in which they do, with all
    outcomes counted.  0 for so few pairs that not even all of them in favour would show it.
    """
    if not margin:
        return _power_of_mcnemar(int(n + 1e-9), discordant, abs(difference), alpha)
    gain = difference + margin
    if gain < 0 or 2 * ((1 - margin) / 2) ** n > alpha:
        return 0.0
    if gain == 0:
        return alpha / 2
    true = max(discordant - difference**2, 1e-12)
    tested = max(_discordant_at(discordant, difference, margin) - margin**2, 1e-12)
    z = special.ndtri(1 - alpha / 2)
    return float(special.ndtr((gain * math.sqrt(n) - z * math.sqrt(tested)) / math.sqrt(true)))


def _power_of_mcnemar(n: int, discordant: float, difference: float, alpha: float) -> float:
    """The sum over all numbers of discordant pairs (but those rarer than 1e-12) and of wins among them."""
    if discordant <= 0:
        return 0.0
    least, most = stats.binom.ppf([1e-12, 1 - 1e-12], n, discordant)
    apart = np.arange(int(least), int(most) + 1)
    lost = stats.binom.ppf(alpha / 2, apart, 0.5)  # of the fewest losses that do not show it
    lost -= stats.binom.cdf(lost, apart, 0.5) > alpha / 2
    shown = stats.binom.cdf(lost, apart, (discordant - difference) / (2 * discordant))
    return float((stats.binom.pmf(apart, n, discordant) * shown).sum())


def _discordant_at(discordant: float, difference: float, margin: float) -> float:
    """The share of discordant pairs that the score test assumes: the likeliest one where the difference is -margin."""
    here, there = (discordant + difference) / 2, (discordant - difference) / 2
    linear = -(here + there) - margin * (2 - here + there)
    q = (math.sqrt(max(linear**2 - 8 * there * margin * (1 + margin), 0.0)) - linear) / 4
    return 2 * q - margin


def pairs_for_rate(
    *, discordant: float, difference: float = 0.0, margin: float = 0.03, alpha: float = 0.05, power: float = 0.8
) -> int | None:
    """The fewest pairs with that power (`power_of_rate`); `None` where no number of pairs is enough."""
    return _fewest(
        lambda n: power_of_rate(n, discordant=discordant, difference=difference, margin=margin, alpha=alpha), power
    )


def _fewest(chance: Callable[[float], float], power: float) -> int | None:
    low, high = 1, 2
    while chance(high) < power:
        low, high = high, high * 2
        if high > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if chance(middle) >= power else (middle, high)
    return high
