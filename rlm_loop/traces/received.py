"""What others wrote and this process reads whole: files, and JSON in them or from a server.

Nothing in either may take the process down or keep it waiting: a file is an ordinary one of bounded size, and JSON is
no deeper than what is done with it afterwards can stand.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import zlib
from pathlib import Path
from typing import Any, cast

LARGEST = 2 << 30
"""Bytes of a file that is read whole, unpacked."""
DEEPEST = 200
"""Levels of lists and objects; Python's own stack holds a few hundred more, of which callers have taken a part."""


def parse(text: str | bytes) -> Any:
    """The value of a JSON text.  Raises `ValueError` for what is none, and beyond `DEEPEST` levels."""
    try:
        value: Any = json.loads(text)
    except RecursionError:
        raise ValueError("JSON of too many levels") from None
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        if not (level := [item for part in level for item in _parts(part)]):
            return value
    raise ValueError(f"JSON of more than {DEEPEST} levels")


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [v for v in cast("dict[str, Any]", value).values() if type(v) is dict or type(v) is list]
    if isinstance(value, list):
        return [v for v in cast("list[Any]", value) if type(v) is dict or type(v) is list]
    return []


def shown(value: object) -> str:
    """The `repr` of a value that somebody else made; one that Python will not write out is named instead."""
    try:
        return repr(value)
    except Exception as error:  # more than 4,300 digits, levels without end
        start = f" {hex(value)[:32]}..." if type(value) is int else ""
        return f"<{type(value).__name__}{start} that cannot be written out ({type(error).__name__})>"


def file_bytes(path: str | Path) -> bytes:
    """The bytes of an ordinary file, gzip unpacked; it is opened without waiting for whoever writes to a pipe.

    Raises `OSError`, also for a folder, a pipe, a device, a damaged packing and more than `LARGEST` bytes.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if stat.S_ISDIR(about.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not an ordinary file", str(path))
        if about.st_size > LARGEST:
            raise _too_large(path)
        raw = file.read()
    packed = raw[:2] == b"\x1f\x8b" or Path(path).suffix == ".gz"
    return unpacked(raw, LARGEST, path) if packed else raw


def unpacked(data: bytes, most: int, path: str | Path = "") -> bytes:
    """What gzip packed, all of its members.  Raises `OSError` for damage, and for more than `most` bytes."""
    found: list[bytes] = []
    while data.strip(b"\0"):
        unpacking = zlib.decompressobj(16 + zlib.MAX_WBITS)
        try:
            found.append(unpacking.decompress(data, max(most, 0) + 1))
        except zlib.error as error:
            raise OSError(errno.EINVAL, f"damaged gzip ({error})", str(path)) from error
        most -= len(found[-1])
        if most < 0:
            raise _too_large(path)
        if not unpacking.eof:
            raise OSError(errno.EINVAL, "damaged gzip (it ends early)", str(path))
        data = unpacking.unused_data
    return b"".join(found)


def _too_large(path: str | Path) -> OSError:
    return OSError(errno.EFBIG, "too large to be read whole", str(path))
