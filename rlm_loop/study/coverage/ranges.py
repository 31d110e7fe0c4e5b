"""Half-open ranges of characters: joined, counted, measured."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal

Range = tuple[int, int]
#: What becomes of text that the long text holds several times (see `place`).
Ambiguous = Literal["next", "all"]
#: Characters from which on a piece of text counts.
LEAST = 24


def merged(ranges: Iterable[Range]) -> list[Range]:
    """Ranges joined where they touch or overlap, sorted; empty ones are dropped."""
    done: list[Range] = []
    for start, end in sorted(r for r in ranges if r[1] > r[0]):
        if done and start <= done[-1][1]:
            done[-1] = done[-1][0], max(end, done[-1][1])
        else:
            done.append((start, end))
    return done


def within(ranges: Sequence[Range], start: int, end: int) -> int:
    """How many characters of [start, end) lie in ranges that are sorted and disjoint."""
    total = 0
    for number in range(max(0, bisect_left(ranges, (start, start)) - 1), len(ranges)):
        low, high = ranges[number]
        if low >= end:
            break
        total += max(0, min(high, end) - max(low, start))
    return total


def length(ranges: Iterable[Range]) -> int:
    """The characters in disjoint ranges."""
    return sum(end - start for start, end in ranges)


def gaps(ranges: Sequence[Range], size: int) -> list[Range]:
    """What sorted disjoint ranges leave of [0, size)."""
    borders = [(0, 0), *ranges, (size, size)]
    return [(end, start) for (_, end), (start, _) in pairwise(borders) if start > end]


def counted(ranges: Iterable[Range]) -> Iterator[tuple[int, int, int]]:
    """(start, end, times) of the stretches that lie in at least one of ranges which may overlap, in order."""
    changes: dict[int, int] = {}
    for start, end in ranges:
        changes[start] = changes.get(start, 0) + 1
        changes[end] = changes.get(end, 0) - 1
    times = 0
    begin = 0
    for at in sorted(a for a, change in changes.items() if change):
        if times:
            yield begin, at, times
        begin, times = at, times + changes[at]
