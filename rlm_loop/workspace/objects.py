"""Files as git's objects: read without following links, named by their hash, stored once."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from rlm_loop.workspace.git import Git

REGULAR, EXECUTABLE, LINK, SUBMODULE = "100644", "100755", "120000", "160000"
ABSENT = "000000"  # the mode of a file that is not there, with an id of zeros
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
LINKED = {errno.ELOOP, errno.EMLINK}  # what O_NOFOLLOW says of a link, here and elsewhere


@dataclass(frozen=True, slots=True)
class Blob:
    """One file of a tree: git's mode, and the id of its content."""

    mode: str
    id: str


def read(root: Path, name: str) -> tuple[str, bytes, os.stat_result] | None:
    """Mode, content and status of a regular file or link below `root`; None where there is neither.

    No link is followed, not even one that takes a folder's place meanwhile.  Raises `OSError`, such as for a
    file that may not be read.
    """
    *folders, last = name.split("/")
    here = os.open(root, DIRECTORY)
    try:
        for folder in folders:
            inner = os.open(folder, DIRECTORY, dir_fd=here)
            os.close(here)
            here = inner
        status = os.stat(last, dir_fd=here, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return LINK, os.fsencode(os.readlink(last, dir_fd=here)), status
        if not stat.S_ISREG(status.st_mode):
            return None
        with open(os.open(last, _FILE, dir_fd=here), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            mode = EXECUTABLE if status.st_mode & 0o100 else REGULAR
            return (mode, file.readall(), status) if stat.S_ISREG(status.st_mode) else None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno in LINKED:
            return None
        raise
    finally:
        os.close(here)


def write(place: str | Path, content: bytes, *, executable: bool = False, folder: int | None = None) -> None:
    """Make a file, where there is none, that its owner may change; `folder` is an open one that `place` is in."""
    opened = os.open(place, _NEW, 0o777 if executable else 0o666, dir_fd=folder)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(opened, rest) :]
    finally:
        os.close(opened)


class BlobStore:
    """Writes blobs into a repository of ours."""

    def __init__(self, git_dir: Path, object_format: str, there: Collection[str] = ()) -> None:
        self._objects = git_dir / "objects"
        self._hash = object_format
        self._there = set(there)

    def add(self, content: bytes) -> str:
        """The id of this content, which is stored from now on."""
        whole = b"blob %d\0" % len(content) + content
        name = hashlib.new(self._hash, whole, usedforsecurity=False).hexdigest()
        if name not in self._there:
            place = self._objects / name[:2] / name[2:]
            if not place.exists():
                place.parent.mkdir(exist_ok=True)
                with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as file:
                    file.write(zlib.compress(whole, 0))  # speed counts, and the folder is thrown away
                os.chmod(file.name, 0o444)
                os.replace(file.name, place)
            self._there.add(name)
        return name


def listed(git: Git, tree: str) -> tuple[dict[str, Blob], list[str]]:
    """The files of a tree, submodules with them, by name; and the ids of all the objects that it is made of."""
    files: dict[str, Blob] = {}
    ids = [tree]
    for line in git("ls-tree", "-r", "-t", "-z", tree).split(b"\0")[:-1]:
        head, _, name = line.partition(b"\t")
        mode, kind, identity = head.decode().split(" ")
        if kind != "tree":
            files[os.fsdecode(name)] = Blob(mode, identity)
        if kind != "commit":
            ids.append(identity)
    return files, ids


def differences(git: Callable[..., bytes], before: str, after: str) -> dict[str, tuple[Blob, Blob]]:
    """By name, what a file was in one tree and is in the other, of those that differ."""
    if before == after:
        return {}
    fields = git("diff-tree", "-r", "-z", "--raw", "--no-renames", before, after).split(b"\0")
    found: dict[str, tuple[Blob, Blob]] = {}
    for head, name in zip(fields[::2], fields[1::2], strict=False):
        old, new, was, now, _ = head.decode().lstrip(":").split(" ")
        found[os.fsdecode(name)] = Blob(old, was), Blob(new, now)
    return found


def contents(git: Git, ids: Iterable[str]) -> dict[str, bytes]:
    """The contents of blobs, by id."""
    wanted = sorted(set(ids))
    said = git("cat-file", "--batch", stdin="".join(f"{i}\n" for i in wanted).encode()) if wanted else b""
    found: dict[str, bytes] = {}
    at = 0
    for identity in wanted:
        end = said.index(b"\n", at)
        size = int(said[at:end].split(b" ")[2])
        found[identity] = said[end + 1 : end + 1 + size]
        at = end + size + 2
    return found
