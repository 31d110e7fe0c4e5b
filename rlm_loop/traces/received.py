"""Files and JSON of others, which this process reads whole.

Nothing in either may take the process down or keep it waiting: a file is an ordinary one of bounded size, and JSON is
no deeper than what is done with it afterwards can stand.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

LARGEST = 2 << 30
"""Bytes of a file that is read whole, unpacked."""
RATIO = 100
"""Bytes that a packed byte may stand for, where the whole is larger than `_SMALL`."""
_SMALL = 256 << 20
_GZIP = b"\x1f\x8b"  # how it begins
DEEPEST = 200
"""Levels of lists and objects; Python's own stack holds a few hundred more, of which callers have taken a part."""


def parse(text: str | bytes) -> Any:
    """The value of a JSON text.  Raises `ValueError` for what is none, and beyond `DEEPEST` levels."""
    try:
        value: Any = json.loads(text)
    except RecursionError:
        raise ValueError("JSON of too many levels") from None
    level: list[Any] = [value]
    for _ in range(DEEPEST + 1):
        level = [item for part in level if type(part) in (dict, list) for item in _items(part)]
        if not level:
            return value
    raise ValueError(f"JSON of more than {DEEPEST} levels")


def _items(part: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return part.values() if isinstance(part, dict) else part


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
    import gzip  # here: few processes need it
    import zlib

    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
        if about.st_size > LARGEST:
            raise _too_large(path)
        if file.peek(2)[:2] != _GZIP and Path(path).suffix != ".gz":
            return file.read()
        data, most = bytearray(), most_of(about.st_size)
        try:
            unpacked = gzip.GzipFile(fileobj=file)
            while part := unpacked.read1(1 << 20):  # `read` would make room for all that it is allowed
                data += part
                if len(data) > most:
                    raise _too_large(path)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise OSError(errno.EINVAL, f"damaged gzip ({error})", str(path)) from error
    return bytes(data)


def most_of(packed: int) -> int:
    """Return the bytes that a packed file of this size may hold in all."""
    return min(LARGEST, max(_SMALL, packed * RATIO))


def _too_large(path: str | Path) -> OSError:
    return OSError(errno.EFBIG, "too large to be read whole", str(path))
