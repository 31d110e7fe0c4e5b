"""A sequence that is worked out when it is first read.

The account of a model call (`ledger`) has a row for every turn before it, so that of a whole run is quadratic in turns.
It is a pure function of what the call saw, so no turn waits for it, and where nobody looks it is never made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, overload

T = TypeVar("T")


class Later(Sequence[T]):
    """What `make` gives, as a tuple: made once, when it is first read.  Equal to a sequence of the same items.

    `make` has to be pure: threads that read at the same time may both call it.  Pickled, it is the tuple.
    """

    def __init__(self, make: Callable[[], Iterable[T]]) -> None:
        self._make: Callable[[], Iterable[T]] | None = make
        self._made: tuple[T, ...] | None = None

    def _items(self) -> tuple[T, ...]:
        make = self._make  # read once: another thread may be done meanwhile
        if make is not None:
            self._made = tuple(make())
            self._make = None  # what it was made of is not kept
        assert self._made is not None
        return self._made

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self._items()[index]

    def __len__(self) -> int:
        return len(self._items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._items() == tuple(other)  # pyright: ignore[reportUnknownArgumentType]

    def __hash__(self) -> int:
        return hash(self._items())

    def __repr__(self) -> str:
        return repr(self._items())

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self._items(),)
