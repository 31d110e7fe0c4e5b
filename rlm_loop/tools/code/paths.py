"""Files inside of a folder: listed, searched, read and written, through no symbolic link.

Every part of a path is opened on its own and without following links, so that one made between a check and the
opening (by code that runs in the folder) leads nowhere either.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import secrets
import stat
from collections.abc import Generator, Iterator
from pathlib import Path

from rlm_loop.tools.function import ToolError

#: Larger files are data, not code: they are not searched, shown or edited.
MAX_BYTES = 5_000_000
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
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


def read_text(root: Path, path: str) -> str:
    """Return the text of a regular file of at most `MAX_BYTES`; `bytes_of` makes the same bytes of it again.

    Raises `FileNotFoundError`, another `OSError` for what is no regular file, or a `ToolError` with the reason.
    """
    with _opened(root, path) as (folder, name, held):
        # Not blocking: a pipe of that name would else wait for its writer.
        file = os.open(name, _FLAGS, dir_fd=folder)
        held.callback(os.close, file)
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode):
            raise IsADirectoryError(errno.EISDIR, "not a regular file", path)
        if facts.st_size > MAX_BYTES:
            raise ToolError("invalid_arguments", f"{path} is too large: {facts.st_size} bytes, at most {MAX_BYTES}")
        with open(file, "rb", closefd=False) as opened:
            return opened.read(MAX_BYTES).decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """Return the bytes of a text that was read, also where they are no UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def write_bytes(root: Path, path: str, data: bytes) -> None:
    """Put a new file in the place of the old one, with its mode.

    Folders are made where they lack.  Never half a file, and never through a second name (hard link) of the old one.
    Raises `ToolError`.
    """
    with _opened(root, path, make=True) as (folder, name, _):
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
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(spare, dir_fd=folder)
            raise


def _parts(path: str) -> list[str]:
    """Return the parts of a relative path; `ToolError` where it is none, or leads out of the folder."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts:
        raise ToolError("invalid_arguments", f"{path!r} is not a file of the repository")
    if path.startswith(("/", "\\", "~")) or re.match(r"[A-Za-z]:", path):
        raise ToolError("denied", f"{path!r} is not relative: give the path from the repository's top")
    if ".." in parts or any(part.lower() == ".git" for part in parts):
        raise ToolError("denied", f"{path!r} is outside of the repository")
    return parts


@contextlib.contextmanager
def _opened(root: Path, path: str, *, make: bool = False) -> Generator[tuple[int, str, contextlib.ExitStack]]:
    """Yield a descriptor of the folder that a path's file lies in, the file's name, and the end of the block."""
    *folders, name = _parts(path)
    with contextlib.ExitStack() as held:
        try:
            folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            held.callback(os.close, folder)
            for part in folders:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, dir_fd=folder)
                folder = os.open(part, _FLAGS, dir_fd=folder)
                held.callback(os.close, folder)
            yield folder, name, held
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK):  # the answer of O_NOFOLLOW to a link
                raise ToolError("denied", f"{path!r} goes through a symbolic link") from None
            if make or error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENXIO, errno.EISDIR):
                done = "written" if make else "read"
                raise ToolError("runtime", f"{path} cannot be {done}: {error.strerror}") from None
            raise


MAX_HITS = 20
_MAX_TEXT = 200  # characters of a line, or of a query, that are shown
_MOST_NAMED = 3
_PLACE = re.compile(r"(::.*|:\d+(:\d+)?:?)\Z", re.DOTALL)  # what follows a file's name


def search(root: Path, query: str) -> str:
    """Return lines that hold the text as `file:line: text`, at most `MAX_HITS`, and how many more there are."""
    if not query.strip():
        raise ToolError("invalid_arguments", "query is empty")
    for flags in (re.NOFLAG, re.IGNORECASE):
        hits = _hits(root, re.compile(re.escape(query), flags))
        if lines := list(itertools.islice(hits, MAX_HITS)):
            more = sum(1 for _ in hits)
            return "\n".join([*lines, f"... {more} more"] if more else lines)
    nothing = f"no line holds {query if len(query) <= _MAX_TEXT else query[:_MAX_TEXT] + '...'!r}"
    named = _named(root, query)
    return f"{nothing}; read_file shows {' or '.join(named)}" if named else f"{nothing} (plain text, one line)"


def _hits(root: Path, wanted: re.Pattern[str]) -> Iterator[str]:
    """Yield the lines that hold the text."""
    for name in files(root):
        text = ""
        with contextlib.suppress(ToolError, OSError):
            text = read_text(root, name)
        if "\0" not in text and wanted.search(text):
            for number, line in enumerate(text.split("\n"), 1):
                if (match := wanted.search(line)) is not None:
                    yield f"{name}:{number}: {_around(line, match)}"


def _around(line: str, match: re.Match[str]) -> str:
    """Return a line; of a long one, the part that holds the text."""
    text, indent = line.strip(), len(line) - len(line.lstrip())
    if len(text) <= _MAX_TEXT:
        return text
    first = 0 if match.end() - indent <= _MAX_TEXT else max(0, match.start() - indent - _MAX_TEXT // 4)
    dots = "..." if first + _MAX_TEXT < len(text) else ""
    return f"{'...' if first else ''}{text[first : first + _MAX_TEXT]}{dots}"


def _named(root: Path, query: str) -> list[str]:
    """Return the files that a text names, as in `pkg/a.py`, `a.py:12` or `tests/test_a.py::test_b`."""
    path = _PLACE.sub("", query.strip().strip("`'\""))
    if not path or path.isspace():
        return []
    return list(itertools.islice((n for n in files(root) if n == path or n.endswith(f"/{path}")), _MOST_NAMED))
