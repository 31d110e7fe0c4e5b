"""What a cell gets for a value on disk: read when a cell first names it, never by the host, never through the pipe.

The worker gets the source of this file and of those that it needs with the `set` job (see `transfer`), so that they
work behind every launcher and in every Python from 3.8 on, and cost nothing where they are not used.  Standard library
only, and relative imports only.

A file becomes an ordinary `str` or `bytes`; where that would not fit into memory, a `LargeText` or `LargeBytes`.
A folder becomes a `Folder`.
"""

from __future__ import annotations

import mmap
import os
import re

from .files import ContextGone, open_file
from .folder import Folder
from .large import LargeBytes, LargeText
from .memory import room

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_MARGIN = 8 << 20  # bytes of memory that have to be left besides the value
_PLACE = 1 << 16
_UP_TO_THREE = bytes(range(0xF0))  # what characters of up to three bytes in UTF-8 are made of


class Unread:
    """Stands for a text or bytes on disk until a cell names it; whatever else gets hold of it reads it then."""

    __slots__ = ("_job", "_value")

    def __init__(self, job: dict[str, Any]) -> None:
        self._job = job
        self._value: Any = None

    def read(self) -> Any:
        """The value: a `str` or `bytes`, or what stands for one that is larger than memory.

        Raises `ContextGone` where it cannot be had any more.
        """
        if self._value is None:
            self._value = self._read()
        return self._value

    def named_in(self, code: str) -> bool:
        """Whether code may use it: its name stands somewhere there."""
        return re.search(rf"\b{self._job['name']}\b", code) is not None

    def _read(self) -> Any:
        job = self._job
        size, shown = job["size"], job["shown"]
        with open_file(_path(job), shown) as f:
            there = os.fstat(f.fileno()).st_size
            if there < size:
                raise ContextGone(f"{shown} was cut to {there:,} bytes; it had {size:,} when the run began")
            left = room()
            if left is None or _needed(f, job) + size // 16 + _MARGIN <= left:
                try:
                    return _whole(f, job)
                except MemoryError:
                    pass
        large = LargeBytes if job["kind"] == "bytes" else LargeText
        made = large(_path(job), size, job["errors"])
        print(f"[{job['name']} ({size:,} bytes) does not fit into memory, so it is a {large.__name__}: {made.HELP}]")
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(self.read(), name)

    def __len__(self) -> int:
        return len(self.read())

    def __getitem__(self, key: Any) -> Any:
        return self.read()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.read())

    def __contains__(self, item: Any) -> bool:
        return item in self.read()

    def __eq__(self, other: object) -> bool:
        return bool(self.read() == other)

    def __hash__(self) -> int:
        return hash(self.read())

    def __str__(self) -> str:
        return str(self.read())

    def __repr__(self) -> str:
        return f"<{self._job['name']}: {self._job['kind']} of {self._job['size']:,} bytes on disk, not read yet>"


def _needed(f: Any, job: dict[str, Any]) -> int:
    """Bytes of memory that the value is likely to take, by what is in a few places of it."""
    size: int = job["size"]
    if job["kind"] == "bytes" or size < _MARGIN:
        return size
    places: list[bytes] = []
    for at in range(0, size, max(size // 16, _PLACE)):
        f.seek(at)
        places.append(f.read(_PLACE))
    if all(place.isascii() for place in places):
        return size
    # Python keeps all characters as wide as the widest, and holds two copies while it widens them
    return size * (6 if any(place.translate(None, _UP_TO_THREE) for place in places) else 3)


def _whole(f: Any, job: dict[str, Any]) -> Any:
    size: int = job["size"]
    if size == 0:
        return b"" if job["kind"] == "bytes" else ""
    if job["kind"] == "bytes":
        f.seek(0)
        return f.read(size)
    with mmap.mmap(f.fileno(), size, access=mmap.ACCESS_READ) as m:
        return str(m, "utf-8", job["errors"])  # type: ignore[arg-type]


def opened(job: dict[str, Any]) -> Any:
    """What a `set` job binds: a `Folder`, or an `Unread` that the REPL replaces when a cell names it."""
    if job["kind"] != "folder":
        return Unread(job)
    try:
        return Folder(_path(job), job["hidden"])
    except OSError as error:
        raise ContextGone(f"{job['shown']} cannot be read: {error.strerror}") from None


def _path(job: dict[str, Any]) -> str:
    """The user's own file or folder, or the session's copy of a value."""
    path: str = job.get("source") or job["path"]
    return path
