"""Seeded choices, and sizes as they are written in names: `8k`, `100k`, `10M` characters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")

SMALLEST, LARGEST = 2_000, 100_000_000
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


class Draw:
    """Choices that depend on the seed alone: only `Random.random` is used, whose sequence Python promises to keep."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed).random

    def below(self, n: int) -> int:
        return int(self.random() * n)

    def pick(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """All of the items in another order."""
        keyed = [(self.random(), index) for index in range(len(items))]
        return [items[index] for _, index in sorted(keyed)]

    def some(self, items: Sequence[T], n: int) -> list[T]:
        """`n` different items."""
        return self.shuffled(items)[:n]

    def numbers(self, n: int, low: int, high: int) -> list[int]:
        """`n` different integers of `low <= x < high`, in no order."""
        seen: dict[int, None] = {}
        while len(seen) < n:
            seen[low + self.below(high - low)] = None
        return list(seen)


def size_of(text: str | int) -> int:
    """Characters: `"8k"` is 8,000 and `"1M"` a million.  Raises `ValueError` for anything else or out of range."""
    found = re.fullmatch(r"(\d+)([kKmM]?)", str(text).replace("_", ""))
    if found is None:
        raise ValueError(f"size {text!r} is not a number of characters; write 8k, 100k, 1M or 2500")
    size = int(found[1]) * _UNITS[found[2].lower()]
    if not SMALLEST <= size <= LARGEST:
        raise ValueError(f"size {text!r} is out of range; long contexts have {size_name(SMALLEST)} to 100M characters")
    return size


def size_name(size: int) -> str:
    """The shortest spelling: 8000 is `8k`."""
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)
