"""A sequence that is worked out when it is first read.

The account of a model call (`ledger`) has a row for every turn before it, so that of a whole run is quadratic in turns.
It is a pure function of the call, so no turn waits for it, and where nobody looks it is never made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, TypeVar

T = TypeVar("T")


class Later(Sequence[T]):
    """The items that the pure function `make` gives, made when they are first read.  Pickled, it is a tuple."""

    def __init__(self, make: Callable[[], Iterable[T]]) -> None:
        self._make = make

    @cached_property
    def _items(self) -> tuple[T, ...]:
        return tuple(self._make())

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._items == tuple(other)  # pyright: ignore[reportUnknownArgumentType]

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return repr(self._items)

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self._items,)
