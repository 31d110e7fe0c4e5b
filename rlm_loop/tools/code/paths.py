"""What a relative path means inside of a folder, and reading and writing there through no symbolic link.

Every part of a path is opened on its own and without following links, so that one made between the check and the
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


def inside(root: Path, path: str) -> Path:
    """The file that a relative path means; outside of `root`, through a symlink or in `.git` is `denied`."""
    parts = split(path)
    target = root
    for part in parts:
        target /= part
        try:
            linked = target.is_symlink()
        except OSError as error:
            raise ToolError("invalid_arguments", f"{path[:80]!r} cannot be a file: {error.strerror}") from None
        if linked:
            raise _linked(path)
    return target


def split(path: str) -> list[str]:
    """The parts of a relative path; `ToolError` where it is none, or leads out of the folder."""
    if len(path) > _MAX_PATH:
        raise ToolError("invalid_arguments", f"{path[:80]!r} cannot be a file: {os.strerror(errno.ENAMETOOLONG)}")
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        parts = []
    if not parts or "\0" in path:
        raise ToolError("invalid_arguments", f"{path!r} is not a file of the repository")
    if path.startswith(("/", "\\", "~")) or re.match(r"[A-Za-z]:", path):
        raise ToolError("denied", f"{path!r} is not relative: give the path from the repository's top")
    if ".." in parts or any(part.lower() == ".git" for part in parts):
        raise ToolError("denied", f"{path!r} is outside of the repository")
    return parts


def files(root: Path) -> Iterator[str]:
    """The files below `root`, without links, caches and git's own: those of a folder sorted, then its folders'."""
    top = os.fspath(root)
    waiting = [""]  # a list and not a recursion: a folder may be deeper than Python's stack
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(os.path.join(top, folder)) as found:
                entries = sorted(found, key=lambda entry: entry.name)
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
    """The bytes of a regular file of at most `MAX_BYTES`.

    Raises `FileNotFoundError`, or a `ToolError` that says why it is not read.
    """
    parts = split(path)
    with _opened(root, path, parts[:-1]) as folder:
        return _read_in(folder, parts[-1], path)


def contents(root: Path, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Names as `files` gives them, with their bytes, one file at a time; of what cannot be read, nothing."""
    held, folder = None, -1
    with contextlib.ExitStack() as stack:
        for name in names:
            above, _, last = name.rpartition("/")
            try:
                if above != held:  # a folder is opened once for all its files
                    stack.close()
                    held = None
                    folder = stack.enter_context(_opened(root, name, above.split("/") if above else ()))
                    held = above
                data = _read_in(folder, last, name)
            except (ToolError, OSError):
                data = b""
            yield name, data


def write_bytes(root: Path, path: str, data: bytes) -> None:
    """Put a whole new file in the place of the old one, keeping its mode; folders are made where they lack.

    Never half a file, and never through a second name (hard link) of the old one.
    """
    parts = split(path)
    with _opened(root, path, parts[:-1], make=True) as folder:
        spare = f".{secrets.token_hex(8)}.edit"
        try:
            old = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
            mode = stat.S_IMODE(old.st_mode) if stat.S_ISREG(old.st_mode) else None
        except OSError:
            mode = None
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(spare, flags, 0o666, dir_fd=folder), "wb") as file:
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                file.write(data)
            os.replace(spare, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(spare, dir_fd=folder)
            raise ToolError("runtime", f"{path} cannot be written: {error.strerror}") from None


def _read_in(folder: int, name: str, path: str) -> bytes:
    try:
        # Not blocking: a pipe of that name would else wait for its writer.
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        raise _refused(path, error) from None
    try:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            raise FileNotFoundError(errno.ENOENT, "not a regular file", path)
        if facts.st_size > MAX_BYTES:
            raise ToolError("invalid_arguments", f"{path} is too large: {facts.st_size} bytes, at most {MAX_BYTES}")
        parts: list[bytes] = []
        left = MAX_BYTES
        while left > 0 and (part := os.read(file, min(left, facts.st_size + 1))):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
    finally:
        os.close(file)


@contextlib.contextmanager
def _opened(root: Path, path: str, folders: Sequence[str], *, make: bool = False) -> Generator[int, None, None]:
    """A descriptor of the folder that a path's file lies in."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    held = -1
    try:
        held = os.open(root, flags)
        for folder in folders:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(folder, dir_fd=held)
            inner = os.open(folder, flags | os.O_NOFOLLOW, dir_fd=held)
            os.close(held)
            held = inner
    except OSError as error:
        if held >= 0:
            os.close(held)
        if make and error.errno in (errno.ENOTDIR, errno.ENOENT):
            raise ToolError("invalid_arguments", f"{path} cannot be made: a part of it is no folder") from None
        raise _refused(path, error) from None
    try:
        yield held
    finally:
        os.close(held)


def _refused(path: str, error: OSError) -> Exception:
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENXIO):
        return FileNotFoundError(error.errno, error.strerror, path)
    if error.errno in (errno.ELOOP, errno.EMLINK):  # what O_NOFOLLOW says of a link
        return _linked(path)
    return ToolError("runtime", f"{path[:80]} cannot be read: {error.strerror}")


def _linked(path: str) -> ToolError:
    return ToolError("denied", f"{path!r} goes through a symbolic link")
