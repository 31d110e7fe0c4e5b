"""A context that lies on disk: a file or a folder, named by the caller and read where the cells run, never here.

`run(context=Path(...))` makes one of these.  The REPL reads it when it is bound (`worker.load`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from rlm_loop.repl.worker import SNIFF, is_text

MOST_FILES = 100_000
"""Files that a folder may hold as a context."""


class ContextError(ValueError):
    """A context cannot be used; the message is one line that says what to do."""


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
        if path.is_dir():
            raise ContextError(f"the context {str(self.path)!r} is a folder: give the path alone, or ContextFolder")
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "size", path.stat().st_size)
        object.__setattr__(self, "kind", "str" if is_text(self.head(SNIFF)) else "bytes")

    def read(self) -> Iterator[bytes]:
        """Return the bytes in steps."""
        return _in_steps(self.path, self.size)

    def head(self, count: int) -> bytes:
        """The first bytes."""
        with self.path.open("rb") as f:
            return f.read(min(count, self.size))

    def tail(self, count: int) -> bytes:
        """The last bytes."""
        with self.path.open("rb") as f:
            f.seek(max(0, self.size - count))
            return f.read(min(count, self.size))


@dataclass(frozen=True)
class ContextFolder:
    """A folder as the context: in a cell a dict from relative path (with `/`) to text.

    A file that is no text is `bytes`, by the rule of `ContextFile`.  It has the regular files that are there when the
    run begins; names that begin with a dot only with `hidden`; no links that lead out of the folder.
    Raises `ContextError` where there is no folder that can be read, or where it holds more than 100,000 files.
    """

    path: Path
    hidden: bool = False

    def __post_init__(self) -> None:
        path = _readable(self.path)
        if not path.is_dir():
            raise ContextError(f"the context {str(self.path)!r} is a file: give the path alone, or ContextFile")
        object.__setattr__(self, "path", path)
        _ = self.sizes  # listed now, so that a folder that cannot be used is told before the run

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The files in order, with their sizes in bytes."""
        return _listing(str(self.path), self.hidden)

    def read(self, name: str) -> Iterator[bytes]:
        """Return the bytes of one of the files in steps."""
        return _in_steps(self.path / name, self.sizes[name])


OnDisk = ContextFile | ContextFolder


def as_context(value: Any) -> Any:
    """What a caller gave as the context, with a path turned into the file or folder that it names.

    Raises `ContextError` for a path that is not there or cannot be read.
    """
    if not isinstance(value, Path):
        return value
    return ContextFolder(value) if _readable(value).is_dir() else ContextFile(value)


def _in_steps(path: Path, size: int) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as f:
        while size > 0 and (data := f.read(min(size, 1 << 20))):
            size -= len(data)
            yield data


def _readable(path: Path | str) -> Path:
    """Return the absolute path of a regular file or a folder that this user may read."""
    try:
        resolved = Path(path).expanduser().resolve(strict=True)
        mode = resolved.stat().st_mode
    except FileNotFoundError:
        reason = "does not exist: No such file or directory; check the path"
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a NUL in the name
        reason = f"cannot be read: {getattr(error, 'strerror', None) or error}; check the path"
    else:
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            reason = "is neither a file nor a folder; copy it into a file first"
        elif os.access(resolved, os.R_OK | (os.X_OK if stat.S_ISDIR(mode) else 0)):
            return resolved
        else:
            reason = "cannot be read: Permission denied; change its permissions"
    raise ContextError(f"the context {str(path)!r} {reason}")


def _listing(root: str, hidden: bool) -> dict[str, int]:
    """Return the files of `ContextFolder`, by relative path with `/`, in order, with their sizes in bytes."""
    sizes: dict[str, int] = {}
    inside = os.path.realpath(root).rstrip(os.sep) + os.sep

    def complain(error: OSError) -> None:
        if error.filename == root:
            raise error  # of the folder itself; one below it that is closed to us is left out

    for folder, below, files in os.walk(root, onerror=complain):
        below[:] = [name for name in below if hidden or not name.startswith(".")]
        for path in (os.path.join(folder, name) for name in files if hidden or not name.startswith(".")):
            with suppress(OSError):  # a link to nothing
                about = os.stat(path)
                if stat.S_ISREG(about.st_mode) and (
                    not os.path.islink(path) or os.path.realpath(path).startswith(inside)
                ):
                    if len(sizes) >= MOST_FILES:
                        raise ContextError(
                            f"the context {root!r} holds more than {MOST_FILES:,} files; give a part of it"
                        )
                    sizes[os.path.relpath(path, root).replace(os.sep, "/")] = about.st_size
    return dict(sorted(sizes.items()))
