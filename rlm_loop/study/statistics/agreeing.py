"""A p value and an interval that stand side by side say the same."""

from __future__ import annotations

from collections.abc import Callable

#: An interval of so little confidence is all but a point; what it does not exclude nothing does.
_MOST = 0.999


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
