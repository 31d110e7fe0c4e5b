"""Intervals that hold at every look, so that a study may be read while it runs and stop as soon as it is clear."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlm_loop.study.statistics.clusters import Floats


def bounded_sequence(
    values: Any, alpha: float = 0.05, *, low: float = -1.0, high: float = 1.0, grid: int = 801
) -> tuple[Floats, Floats]:
    """A confidence sequence for the mean of values between `low` and `high`: (lower, upper) after each value.

    The chance that the mean is ever outside is at most alpha, however long one goes on and for whatever reason one
    stops, if the values come in an order that is independent of them.  Betting with the hedged capital process and
    predictable plug-in bets: I. Waudby-Smith & A. Ramdas, JRSS B 86 (2024), theorem 3.  The bounds are rounded
    outwards to a grid of means.
    """
    x = (np.asarray(values, dtype=float) - low) / (high - low)
    n = x.shape[-1]
    steps = np.arange(1, n + 1)
    mean = (0.5 + np.cumsum(x, axis=-1)) / (steps + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2, axis=-1)) / (steps + 1)
    before = np.concatenate([np.full((*x.shape[:-1], 1), 0.25), variance[..., :-1]], axis=-1)
    bet = np.sqrt(2 * np.log(2 / alpha) / (before * steps * np.log(steps + 1)))
    means = np.linspace(0, 1, grid)
    up = np.zeros((*x.shape[:-1], grid))
    down, alive = up.copy(), np.ones(up.shape, dtype=bool)
    lower, upper = np.empty(x.shape), np.empty(x.shape)
    with np.errstate(divide="ignore"):
        most_up, most_down = 0.5 / means, 0.5 / (1 - means)
    for t in range(n):
        gap = x[..., t, None] - means
        up += np.log1p(np.minimum(bet[..., t, None], most_up) * gap)
        down += np.log1p(-np.minimum(bet[..., t, None], most_down) * gap)
        alive &= np.maximum(up, down) + np.log(0.5) < np.log(1 / alpha)
        lower[..., t] = np.where(alive.any(-1), alive.argmax(-1), grid - 1)
        upper[..., t] = np.where(alive.any(-1), grid - 1 - alive[..., ::-1].argmax(-1), 0)
    step = 1 / (grid - 1)
    lower, upper = np.maximum(lower - 1, 0) * step, np.minimum(upper + 1, grid - 1) * step
    return low + lower * (high - low), low + upper * (high - low)


def mean_sequence(values: Any, alpha: float = 0.05, *, tuned_for: int = 50) -> tuple[Floats, Floats]:
    """An asymptotic confidence sequence for the mean of values without bounds: (lower, upper) after each value.

    It is narrowest after about `tuned_for` values.  Its error rate holds at every look from a moderate number of
    values on, as that of a t interval does at one.  I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy & A. Ramdas,
    Annals of Statistics 52 (2024), theorem 2.2.  Not a number after the first value, of which no spread is known.
    """
    x = np.asarray(values, dtype=float)
    steps = np.arange(1, x.shape[-1] + 1)
    mean = np.cumsum(x, axis=-1) / steps
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = (np.cumsum(x**2, axis=-1) - steps * mean**2) / (steps - 1)
    variance = np.where(steps > 1, np.maximum(variance, 0), np.nan)
    rho2 = (-2 * np.log(alpha) + np.log(-2 * np.log(alpha) + 1)) / tuned_for
    mixed = steps * rho2 + 1
    half = np.sqrt(variance) * np.sqrt(2 * mixed / (steps**2 * rho2) * np.log(np.sqrt(mixed) / alpha))
    return mean - half, mean + half
