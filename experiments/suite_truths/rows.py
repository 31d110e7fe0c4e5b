"""Functions over rows in plain Python, without pandas, for the truths of `frames` and `tables`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import pairwise
from math import fsum
from typing import Any, TypeVar

from experiments.suite_truths.tables import Row, Rows

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Unfit(ValueError):
    """With these rows a question has two right answers, or one that can be had without looking."""


def count(items: Iterable[T], wanted: Callable[[T], Any]) -> int:
    return sum(1 for item in items if wanted(item))


def at_least(limit: float, values: Iterable[float]) -> int:
    return count(values, lambda value: value >= limit)


def top(scores: Mapping[K, float]) -> K:
    return ranked(scores, 1)[0]


def ranked(scores: Mapping[K, float], n: int) -> list[K]:
    """The `n` keys with the greatest values, greatest first; `Unfit` where two values are too near to tell apart."""
    keys = sorted(scores, key=lambda key: scores[key], reverse=True)[: n + 1]
    if len(keys) <= n or any(scores[a] - scores[b] < 1e-6 for a, b in pairwise(keys)):
        raise Unfit(f"{keys} are too few or too near")
    return keys[:n]


def mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return fsum(numbers) / len(numbers)


def percent(part: float, whole: float) -> float:
    return 100 * part / whole


def groups(rows: Iterable[Row], key: str | Callable[[Row], K]) -> dict[Any, list[Row]]:
    found: defaultdict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[key] if isinstance(key, str) else key(row)].append(row)
    return dict(found)


def each(found: Mapping[K, list[Row]], measure: Callable[[list[Row]], float]) -> dict[K, float]:
    return {key: measure(rows) for key, rows in found.items()}


def where(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def having(rows: Iterable[Row], *names: str) -> list[Row]:
    """The rows that lack none of these."""
    return [row for row in rows if all(row[name] is not None for name in names)]


def known(rows: Iterable[Row], name: str) -> list[Any]:
    return [row[name] for row in rows if row[name] is not None]


def once(rows: Rows) -> list[Row]:
    """Each row once, in the order of the first of each kind."""
    return list({tuple(row.values()): row for row in rows}.values())


def span(values: list[float]) -> float:
    return max(values) - min(values)
