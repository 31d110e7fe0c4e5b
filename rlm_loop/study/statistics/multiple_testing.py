"""Several claims of one study: p values, and levels of intervals, that stay honest when there is more than one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
