"""A context that lies on disk: a file, named by the caller and read where the cells run.

`run(context=Path(...))` makes one of these.  The REPL reads it when it is bound (`worker.load`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal


class ContextError(ValueError):
    """A context cannot be used; the message is one line that says what to do."""


SNIFF = 1 << 16  # bytes at the beginning of a file that decide whether it is text


@dataclass(frozen=True)
class ContextFile:
    """A file as the context: in a cell a `str` where it is UTF-8 text, else `bytes`.

    `size` is its bytes as the run began: what is appended later is no part of the context.  `kind` is decided by the
    first 64 KiB (UTF-8, less than an eighth NUL); bytes further on that are not UTF-8 come as lone surrogates
    (`surrogateescape`), so that none is lost.  Line ends stay as they are.
    Raises `ContextError` where there is no file that can be read.
    """

    path: Path
    size: int = field(init=False)
    kind: Literal["str", "bytes"] = field(init=False)

    def __post_init__(self) -> None:
        path = _readable(self.path)
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "size", path.stat().st_size)
        object.__setattr__(self, "kind", "str" if is_text(self.head(SNIFF)) else "bytes")

    def read(self) -> Iterator[bytes]:
        """Return the bytes in steps."""
        size = self.size
        with self.path.open("rb", buffering=0) as f:
            while size > 0 and (data := f.read(min(size, 1 << 20))):
                size -= len(data)
                yield data

    def head(self, count: int) -> bytes:
        """The first bytes."""
        with self.path.open("rb") as f:
            return f.read(min(count, self.size))


def as_context(value: Any) -> Any:
    """Return a caller's context, with a path turned into the file that it names.

    Raises `ContextError` for a path that is not there, cannot be read, or is no file.
    """
    return ContextFile(value) if isinstance(value, Path) else value


def _readable(path: Path) -> Path:
    """Return the absolute path of a regular file that this user may read."""
    try:
        resolved = path.expanduser().resolve(strict=True)
        mode = resolved.stat().st_mode
    except FileNotFoundError:
        reason = "does not exist: No such file or directory; check the path"
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a NUL in the name
        reason = f"cannot be read: {getattr(error, 'strerror', None) or error}; check the path"
    else:
        if stat.S_ISDIR(mode):
            reason = (
                "is a folder; give the texts of its files: {str(p): p.read_text() for p in Path(...).rglob('*.md')}"
            )
        elif not stat.S_ISREG(mode):
            reason = "is no file; copy it into one first"
        elif os.access(resolved, os.R_OK):
            return resolved
        else:
            reason = "cannot be read: Permission denied; change its permissions"
    raise ContextError(f"the context {str(path)!r} {reason}")


def is_text(head: bytes) -> bool:
    """Return True where a file that begins so is text: UTF-8, and less than an eighth NUL, as far as `SNIFF` tells.

    What is not UTF-8 further on becomes lone surrogates (`surrogateescape`), so that no byte is lost.
    """
    if 8 * head.count(b"\0") > len(head):  # UTF-16 of English is half NUL, and so UTF-8 of a kind; so are holes
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return len(head) == SNIFF and error.start > SNIFF - 4 and error.reason == "unexpected end of data"
    return True
