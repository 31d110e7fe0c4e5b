"""Texts and bytes on disk that do not fit into memory: like `str` and `bytes` as far as that goes."""

from __future__ import annotations

import mmap
import os

from .files import open_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

STEP = 1 << 20


class _Large:
    """A file that is larger than memory."""

    HELP = ""

    def __init__(self, path: str, size: int, errors: str) -> None:
        with open_file(path, os.path.basename(path)) as f:
            self._map = mmap.mmap(f.fileno(), size, access=mmap.ACCESS_READ)
        self._size, self._errors = size, errors

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._size:,} bytes: {self.HELP}>"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a {type(self).__name__} has no {name!r}, as it is larger than memory; {self.HELP}")

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} is larger than memory and cannot be copied; {self.HELP}")

    def __bool__(self) -> bool:
        return self._size > 0


class LargeBytes(_Large):
    """Bytes of a file that is larger than memory."""

    HELP = "use len(), slices, find(), count(), in; `.buffer` is for re"

    @property
    def buffer(self) -> Any:
        return self._map

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, key: Any) -> Any:
        return self._map[key]

    def __contains__(self, item: bytes) -> bool:
        return self._map.find(item) >= 0

    def find(self, sub: bytes, start: int = 0, end: int | None = None) -> int:
        return self._map.find(sub, start, self._size if end is None else end)

    def count(self, sub: bytes) -> int:
        return _count(self._map, sub)


class LargeText(_Large):
    """A UTF-8 text that is larger than memory, by character like a `str`: parts of it are read when asked for.

    Where it is not ASCII throughout, the first use of a position reads all of it once, to know where characters lie.
    """

    HELP = "use len(), slices such as [a:b], find(), count(), in, and lines() for one line after another"

    def __init__(self, path: str, size: int, errors: str) -> None:
        super().__init__(path, size, errors)
        self._marks: list[int] | None = None  # characters before each step of STEP bytes, then all of them

    def lines(self) -> Iterator[str]:
        """Each line without its line break, one after another."""
        at = 0
        while at < self._size:
            end = self._map.find(b"\n", at)
            end = self._size if end < 0 else end
            yield self._text(at, end)
            at = end + 1

    def __len__(self) -> int:
        return self._index()[-1]

    def __getitem__(self, key: Any) -> str:
        length = len(self)
        if isinstance(key, slice):
            start, stop, step = key.indices(length)
            if step != 1:
                positions = range(start, stop, step)
                if not positions:
                    return ""
                low, high = min(positions[0], positions[-1]), max(positions[0], positions[-1])
                return self[low : high + 1][:: abs(step)][:: 1 if step > 0 else -1]
            return self._text(self._byte(start), self._byte(stop)) if start < stop else ""
        at = key.__index__()
        at += length if at < 0 else 0
        if not 0 <= at < length:
            raise IndexError("string index out of range")
        return self[at : at + 1]

    def __contains__(self, item: str) -> bool:
        return self._map.find(self._raw(item)) >= 0

    def __iter__(self) -> Iterator[str]:
        for at in range(0, len(self), STEP):
            yield from self[at : at + STEP]

    def find(self, sub: str, start: int = 0, end: int | None = None) -> int:
        length = len(self)
        first, last, _ = slice(start, end).indices(length)
        at = self._map.find(self._raw(sub), self._byte(first), self._byte(last))
        return at if at < 0 else self._character(at)

    def index(self, sub: str, start: int = 0, end: int | None = None) -> int:
        at = self.find(sub, start, end)
        if at < 0:
            raise ValueError("substring not found")
        return at

    def count(self, sub: str) -> int:
        return len(self) + 1 if not sub else _count(self._map, self._raw(sub))

    def __str__(self) -> str:
        raise MemoryError(f"the text is larger than memory; {self.HELP}")

    def _raw(self, text: str) -> bytes:
        return text.encode("utf-8", self._errors)

    def _text(self, start: int, stop: int) -> str:
        return self._map[start:stop].decode("utf-8", self._errors)

    def _index(self) -> list[int]:
        if self._marks is None:
            marks = [0]
            for at in range(0, self._size, STEP):
                marks.append(marks[-1] + self._begun(at, min(at + STEP, self._size)))
            self._marks = marks
        return self._marks

    def _begun(self, start: int, stop: int) -> int:
        """How many characters begin between two bytes."""
        return len(self._map[start:stop].translate(None, _CONTINUATION))

    def _byte(self, character: int) -> int:
        """The byte at which a character begins."""
        marks = self._index()
        if character >= marks[-1]:
            return self._size
        low, high = 0, len(marks) - 1  # the last step with no more than `character` characters before it
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if marks[middle] <= character else (low, middle)
        start, stop, left = low * STEP, min((low + 1) * STEP, self._size), character - marks[low]
        if stop - start == marks[low + 1] - marks[low]:
            return start + left
        while stop - start > 1:  # the character begins between them
            middle = (start + stop) // 2
            begun = self._begun(start, middle)
            if begun > left:
                stop = middle
            else:
                start, left = middle, left - begun
        return start

    def _character(self, byte: int) -> int:
        step = byte // STEP
        return self._index()[step] + self._begun(step * STEP, byte)


_CONTINUATION = bytes(range(0x80, 0xC0))  # bytes of UTF-8 that do not begin a character


def _count(data: Any, sub: bytes) -> int:
    found, at = 0, data.find(sub)
    while at >= 0:
        found, at = found + 1, data.find(sub, at + max(len(sub), 1))
    return found
