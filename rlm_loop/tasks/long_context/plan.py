"""Plans of tasks: a question, the lines put into the text, seeded choices, and sizes such as `8k` and `10M`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from rlm_loop.tasks.long_context.text import window
from rlm_loop.tasks.match import How

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


INTEGER = "Answer with an integer."
#: With one of these every question begins.
STARTS = ("One line of the context", "The context has", "Some lines of the context", "Each line of the context")


@dataclass(frozen=True)
class QuestionPlan:
    """A question, its truth, and a function that makes the lines to be put in: a list of suites needs no lines."""

    question: str
    expected: Any
    lines: Callable[[], Sequence[str]]
    how: How = "exact"


def weave(lines: Sequence[str], size: int, filler: str, draw: Draw) -> str:
    """Exactly `size` characters: a window of the filler, with the lines in their order at places drawn at random.

    Each stands on a line of its own.  Raises `ValueError` where they do not fit.
    """
    room = size - sum(len(line) + 1 for line in lines)
    if room < 0:
        raise ValueError(f"{len(lines)} lines do not fit into {size:,} characters; choose a larger size")
    text = window(filler, draw.below(len(filler)), room)
    parts: list[str] = []
    done = 0
    for line, drawn in zip(lines, sorted(draw.below(room + 1) for _ in lines), strict=True):
        place = max(done, text.rfind("\n", 0, drawn) + 1)
        parts += [text[done:place], line, "\n"]
        done = place
    return "".join([*parts, text[done:]])
