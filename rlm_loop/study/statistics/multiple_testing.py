"""Several claims of one study, or several looks at it: p values, levels and intervals that stay honest then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rlm_loop.study.statistics.clusters import Floats

#: An interval of so little confidence is all but a point; what it does not exclude nothing does.
_MOST = 0.999


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p values of a family of claims, in the order given; `None` is no claim, and stays `None`.

    A claim holds at alpha for the whole family where its adjusted value is at most alpha.  S. Holm, Scandinavian
    Journal of Statistics 6 (1979).
    """
    known = sorted((p, i) for i, p in enumerate(values) if p is not None)
    adjusted: list[float | None] = [None] * len(values)
    largest = 0.0
    for rank, (p, i) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        adjusted[i] = largest
    return adjusted


def holm_levels(values: Sequence[float | None], alpha: float = 0.05) -> list[float]:
    """At which level Holm's procedure judges each claim; alpha for what is no claim.

    A claim of p holds for the family exactly where p is at most its level, and so where its interval of 1 - level
    excludes that there is nothing.  The first claim that does not hold ends the procedure, and those after it are
    judged at its level.  Such intervals go with the p values; that all of them hold the truth together is not promised.
    """
    known = sorted((p, i) for i, p in enumerate(values) if p is not None)
    levels = [alpha] * len(values)
    rank = 0
    for p, i in known:
        levels[i] = alpha / (len(known) - rank)
        rank += p <= levels[i]
    return levels


def smallest_level(least: float, excludes: Callable[[float], bool]) -> float:
    """The smallest alpha, `least` or above, at which the interval of level 1 - alpha excludes a value; 1 for none.

    `least` is the p of the test of that value, `excludes` says whether the interval at an alpha does.  So the p that is
    shown is at most alpha only where test and interval agree.  Intervals have to be nested.
    """
    if least >= _MOST or excludes(least):
        return least
    if not excludes(_MOST):
        return 1.0
    low, high = least, _MOST
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if excludes(middle) else (middle, high)
    return high


def bounded_sequence(values: Any, alpha: float = 0.05, *, grid: int = 801) -> tuple[Floats, Floats]:
    """A confidence sequence for the mean of values between -1 and 1: (lower, upper) after each value.

    The chance that the mean is ever outside is at most alpha, and at most alpha / 2 on each side, however long one goes
    on and for whatever reason one stops, if the values come in an order that is independent of them.  Betting with the
    hedged capital process and predictable plug-in bets: I. Waudby-Smith & A. Ramdas, JRSS B 86 (2024), theorem 3.  The
    bounds are rounded outwards to a grid of means.
    """
    x, means = (np.asarray(values, dtype=float) + 1) / 2, np.linspace(0, 1, grid)
    steps = np.arange(1, x.shape[-1] + 1)
    mean = (0.5 + np.cumsum(x, axis=-1)) / (steps + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2, axis=-1)) / (steps + 1)
    before = np.concatenate([np.full((*x.shape[:-1], 1), 0.25), variance[..., :-1]], axis=-1)
    bet = np.sqrt(2 * np.log(2 / alpha) / (before * steps * np.log(steps + 1)))
    up = np.zeros((*x.shape[:-1], grid))
    down, alive = up.copy(), np.ones(up.shape, dtype=bool)  # the means that are not excluded yet
    lower, upper = np.empty(x.shape), np.empty(x.shape)
    with np.errstate(divide="ignore"):
        most_up, most_down = 0.5 / means, 0.5 / (1 - means)
    for t in range(x.shape[-1]):
        gap = x[..., t, None] - means
        up += np.log1p(np.minimum(bet[..., t, None], most_up) * gap)
        down += np.log1p(-np.minimum(bet[..., t, None], most_down) * gap)
        alive &= np.maximum(up, down) + np.log(0.5) < np.log(1 / alpha)
        lower[..., t] = np.where(alive.any(-1), alive.argmax(-1), grid - 1)
        upper[..., t] = np.where(alive.any(-1), grid - 1 - alive[..., ::-1].argmax(-1), 0)
    step = 1 / (grid - 1)
    lower, upper = np.maximum(lower - 1, 0) * step, np.minimum(upper + 1, grid - 1) * step
    return 2 * lower - 1, 2 * upper - 1
