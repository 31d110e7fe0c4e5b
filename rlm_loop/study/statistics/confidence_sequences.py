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


def symmetric_sequence(values: Any, alpha: float = 0.05, *, grid: int = 801) -> tuple[Floats, Floats]:
    """A confidence sequence for the centre of values that are symmetric about it: (lower, upper) after each value.

    The chance that the centre is ever outside is at most alpha, from the first value on, whatever the spread and the
    tails: it is a bet on the sign of each value's distance from the centre, given its size, and no bet on a fair sign
    wins on average.  (The sequential form of `sign_flip`.)  The stake is tanh(b d) at distance d, with b the sum of the
    earlier distances over that of their squares, and |b d| at most 1: V. H. de la Pena, Annals of Probability 27 (1999)
    for the bet, J. Ville (1939) for its bound at every look.  A bound is infinite until there are values enough (7, at
    95 %); bounds are rounded outwards to a grid.
    """
    x = np.asarray(values, dtype=float)
    first, last = x.min(axis=-1, keepdims=True), x.max(axis=-1, keepdims=True)
    half = np.where(last > first, (last - first) / 2, np.maximum(np.abs(last), 1))
    means = first - half + (last - first + 2 * half) * np.linspace(0, 1, grid)
    wealth, total, squares = np.zeros((3, *means.shape))
    alive = np.ones(means.shape, dtype=bool)
    lower, upper = np.empty(x.shape), np.empty(x.shape)
    for t in range(x.shape[-1]):
        distance = x[..., t, None] - means
        bet = np.clip(total / np.where(squares > 0, squares, 1) * distance, -1, 1)
        wealth += bet - np.log(np.cosh(bet))  # the logarithm of 1 + tanh
        total, squares = total + distance, squares + distance**2
        left = alive & (wealth < np.log(1 / alpha))
        alive = np.where(left.any(axis=-1, keepdims=True), left, alive)
        down, up = alive.argmax(axis=-1), grid - 1 - alive[..., ::-1].argmax(axis=-1)
        ends = [np.take_along_axis(means, np.clip(at, 0, grid - 1)[..., None], -1)[..., 0] for at in (down - 1, up + 1)]
        lower[..., t] = np.where(down == 0, -np.inf, ends[0])
        upper[..., t] = np.where(up == grid - 1, np.inf, ends[1])
    return lower, upper
