"""Relative paths inside of a folder: listed, read and written, through no symbolic link.

Every part of a path is opened on its own and without following links, so that one made between a check and the
opening (by code that runs in the folder) leads nowhere either.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path

from rlm_loop.tools.function import ToolError

#: Larger files are data, not code: they are not searched, shown or edited.
MAX_BYTES = 5_000_000
_MAX_PATH = 1000
#: Files and folders that are no part of a repository's own text.
_SKIPPED = frozenset({".git", "__pycache__", ".pytest_cache"})


def files(root: Path) -> Iterator[str]:
    """Yield the files below `root`, without links, caches and git's own, folder by folder."""
    waiting = [""]  # a list and not a recursion: a folder may be deeper than Python's stack
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(os.path.join(root, folder)) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError:  # removed meanwhile, or not readable
            continue
        below: list[str] = []
        for entry in entries:
            if entry.name in _SKIPPED or entry.name.endswith(".egg-info"):
                continue
            if entry.is_dir(follow_symlinks=False):
                below.append(f"{folder}{entry.name}/")
            elif entry.is_file(follow_symlinks=False):
                yield folder + entry.name
        waiting.extend(reversed(below))


def read_bytes(root: Path, path: str) -> bytes:
    """Return the bytes of a regular file of at most `MAX_BYTES`.

    Raises `FileNotFoundError`, `IsADirectoryError` for what is no regular file, or a `ToolError` with the reason.
    """
    *folders, name = _parts(path)
    with _opened(root, path, folders) as folder:
        try:
            # Not blocking: a pipe of that name would else wait for its writer.
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except OSError as error:
            raise _refused(path, error, "read") from None
    with open(file, "rb") as opened:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            raise IsADirectoryError(errno.EISDIR, "not a regular file", path)
        if facts.st_size > MAX_BYTES:
            raise ToolError("invalid_arguments", f"{path} is too large: {facts.st_size} bytes, at most {MAX_BYTES}")
        return opened.read(MAX_BYTES)


def texts(root: Path, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield names of text files with their bytes; unreadable ones are left out."""
    for name in names:
        with contextlib.suppress(ToolError, OSError):
            if b"\0" not in (data := read_bytes(root, name)):
                yield name, data


def write_bytes(root: Path, path: str, data: bytes) -> None:
    """Put a new file in the place of the old one, with its mode.

    Folders are made where they lack.  Never half a file, and never through a second name (hard link) of the old one.
    Raises `ToolError`.
    """
    *folders, name = _parts(path)
    with _opened(root, path, folders, make=True) as folder:
        spare = f".{secrets.token_hex(8)}.edit"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(spare, flags, 0o666, dir_fd=folder), "wb") as file:
                with contextlib.suppress(FileNotFoundError):
                    old = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if stat.S_ISREG(old.st_mode):
                        os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
                file.write(data)
            os.replace(spare, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(spare, dir_fd=folder)
            raise ToolError("runtime", f"{path} cannot be written: {error.strerror}") from None


def _parts(path: str) -> list[str]:
    """Return the parts of a relative path; `ToolError` where it is none, or leads out of the folder."""
    if len(path) > _MAX_PATH:
        raise ToolError("invalid_arguments", f"{path[:80]!r} cannot be a file: {os.strerror(errno.ENAMETOOLONG)}")
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts or "\0" in path or re.search("[\ud800-\udfff]", path):
        raise ToolError("invalid_arguments", f"{path!r} is not a file of the repository")
    if path.startswith(("/", "\\", "~")) or re.match(r"[A-Za-z]:", path):
        raise ToolError("denied", f"{path!r} is not relative: give the path from the repository's top")
    if ".." in parts or any(part.lower() == ".git" for part in parts):
        raise ToolError("denied", f"{path!r} is outside of the repository")
    return parts


@contextlib.contextmanager
def _opened(root: Path, path: str, folders: Sequence[str], *, make: bool = False) -> Generator[int]:
    """Yield a descriptor of the folder that a path's file lies in."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    with contextlib.ExitStack() as held:
        folder, name = -1, ""
        try:
            folder = os.open(root, flags)
            held.callback(os.close, folder)
            for name in folders:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, dir_fd=folder)
                folder = os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
                held.callback(os.close, folder)
        except OSError as error:
            if name and error.errno == errno.ENOTDIR and stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode):
                raise _linked(path) from None
            if make and error.errno in (errno.ENOTDIR, errno.ENOENT):
                raise ToolError("invalid_arguments", f"{path} cannot be made: a part of it is no folder") from None
            raise _refused(path, error, "written" if make else "read") from None
        yield folder


def _refused(path: str, error: OSError, done: str) -> Exception:
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENXIO):
        return FileNotFoundError(error.errno, error.strerror, path)
    if error.errno in (errno.ELOOP, errno.EMLINK):  # the answer of O_NOFOLLOW to a link
        return _linked(path)
    if error.errno == errno.ENAMETOOLONG:
        return ToolError("invalid_arguments", f"{path[:80]!r} cannot be a file: {error.strerror}")
    return ToolError("runtime", f"{path[:80]} cannot be {done}: {error.strerror}")


def _linked(path: str) -> ToolError:
    return ToolError("denied", f"{path!r} goes through a symbolic link")
