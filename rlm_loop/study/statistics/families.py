"""Several claims of one study: p values that stay honest when there is more than one."""

from __future__ import annotations

from collections.abc import Sequence


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
