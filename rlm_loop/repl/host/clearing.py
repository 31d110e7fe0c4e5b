"""Removing folders that a cell or a command could fill with anything."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def temporary(prefix: str) -> Generator[Path]:
    """A new folder, removed at the end (`tempfile.TemporaryDirectory` calls itself for each level)."""
    folder = Path(tempfile.mkdtemp(prefix=prefix)).resolve()
    try:
        yield folder
    finally:
        remove(folder)


def remove(folder: str | Path, *, within: int | None = None) -> None:
    """Remove a folder and what is in it, as far as that can be had; never raises `OSError`.

    `within` is an open folder that the name is looked up in.

    However deep folders are nested in each other (`shutil.rmtree` calls itself for each level): each is first moved to
    the top.  No link is followed, and rights that were taken away from a folder are given back.
    """
    if os.rename not in os.supports_dir_fd or not hasattr(os, "O_PATH"):  # neither Linux
        with suppress(RecursionError):
            shutil.rmtree(folder, ignore_errors=True, dir_fd=within)
        return
    with suppress(OSError):
        top = _opened(folder, within)
        try:
            _empty(top)
        finally:
            os.close(top)
        os.rmdir(folder, dir_fd=within)


def _empty(top: int) -> None:
    fresh = (f".removed-{os.getpid()}-{number}" for number in count())
    waiting = _clear(top, top, None)
    while waiting:
        name = waiting.pop()
        with suppress(OSError):
            inner = _opened(name, top)
            try:
                for below in _clear(inner, top, fresh):
                    waiting.append(below)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)


def _clear(folder: int, top: int, fresh: Iterator[str] | None) -> list[str]:
    """Remove the files of a folder and move its folders to the top; their names there."""
    found: list[str] = []
    with os.scandir(folder) as entries:
        listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in listed:
        with suppress(OSError):
            if not is_folder:
                os.unlink(name, dir_fd=folder)
            elif fresh is None:
                found.append(name)
            else:
                os.close(_opened(name, folder))  # with rights: a folder that may not be written cannot be moved
                moved = next(fresh)
                os.rename(name, moved, src_dir_fd=folder, dst_dir_fd=top)
                found.append(moved)
    return found


def _opened(name: str | Path, within: int | None) -> int:
    """A folder, with the rights to list and change it; whoever owns it may take them back."""
    place = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=within)
    try:
        if os.stat(place).st_mode & 0o700 != 0o700:
            with suppress(OSError):
                os.chmod(f"/proc/self/fd/{place}", 0o700)
        return os.open(name, _FOLDER, dir_fd=within)
    finally:
        os.close(place)
