"""Trees in a repository of ours: made from blobs, compared, laid out as files."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from rlm_loop.repl.host.clearing import remove
from rlm_loop.workspace import objects
from rlm_loop.workspace.git import Git
from rlm_loop.workspace.objects import Blob


class GitIndex:
    """An index file of ours, changed by differences, and the tree it makes."""

    def __init__(self, git: Git, name: str = "index") -> None:
        self._git, self._file = git, str(git.git_dir / name)
        self._blobs: dict[str, Blob] = {}
        self._submodules: dict[str, Blob] = {}
        self._tree = ""

    def load(self, tree: str, blobs: Mapping[str, Blob], *, fresh: bool = True) -> None:
        """Start from a tree, whose files are `blobs`."""
        if fresh:
            self._git("read-tree", tree, GIT_INDEX_FILE=self._file)
        self._blobs, self._tree = dict(blobs), tree
        self._submodules = {name: blob for name, blob in blobs.items() if blob.mode == objects.SUBMODULE}

    def change(self, blobs: Mapping[str, Blob]) -> str:
        """The id of the tree with these files; submodules stay as they are."""
        wanted = {**blobs, **self._submodules}
        had = self._blobs
        gone = [index_line("0", "0" * len(had[name].id), name) for name in had.keys() - wanted.keys()]
        new = [
            index_line(b.mode, b.id, name) for name, b in wanted.items() if (old := had.get(name)) is not b and old != b
        ]
        if gone or new:
            self._tree = ""
            lines = b"".join([*gone, *new])  # in this order a file may become a folder, or the reverse
            self._git("update-index", "--replace", "-z", "--index-info", stdin=lines, GIT_INDEX_FILE=self._file)
            self._blobs = wanted
        if not self._tree:
            self._tree = self._git("write-tree", GIT_INDEX_FILE=self._file).decode().strip()
        return self._tree


def lay_out(git: Git, root: Path, wanted: Mapping[str, Blob | None]) -> None:
    """Write these files, and remove those that are None.

    No link is followed, not even one that a process still running puts in a folder's place meanwhile: every step is
    made from a folder that is open.
    """
    for name, blob in wanted.items():
        if blob is None:
            _remove(root, name.split("/"))
    contents = objects.contents(git, {blob.id for blob in wanted.values() if blob and blob.mode != objects.SUBMODULE})
    for name, blob in wanted.items():
        if blob is not None and blob.mode != objects.SUBMODULE:
            _write(root, name.split("/"), blob.mode, contents[blob.id])


def _remove(root: Path, parts: Sequence[str]) -> None:
    """Remove a file or link, and the folders that are empty without it."""
    *folders, last = parts
    place = _OpenFolder(root)
    try:
        seen = [place.identity]
        for part in folders:
            place.enter(part)
            seen.append(place.identity)
        if _is_folder(last, place.folder):
            return
        os.unlink(last, dir_fd=place.folder)
        for part, parent in zip(reversed(folders), reversed(seen[:-1]), strict=True):
            place.enter("..")
            if place.identity != parent:  # it was moved elsewhere meanwhile
                return
            os.rmdir(part, dir_fd=place.folder)
    except OSError as error:
        # something else took its place, or that of its folder: the file is gone; or a folder holds more
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST, *objects.LINKED):
            raise
    finally:
        place.leave()


def _write(root: Path, parts: Sequence[str], mode: str, content: bytes) -> None:
    """Write a file or link, with its folders; what else is there under one of these names makes room."""
    *folders, last = parts
    place = _OpenFolder(root)
    try:
        for part in folders:
            if not _is_folder(part, place.folder):
                with suppress(FileNotFoundError):
                    os.unlink(part, dir_fd=place.folder)
                os.mkdir(part, dir_fd=place.folder)
            place.enter(part)
        if _is_folder(last, place.folder):
            remove(last, within=place.folder)
        with suppress(FileNotFoundError):
            os.unlink(last, dir_fd=place.folder)
        if mode == objects.LINK:
            os.symlink(os.fsdecode(content), last, dir_fd=place.folder)
        else:
            objects.write(last, content, executable=mode == objects.EXECUTABLE, folder=place.folder)
    finally:
        place.leave()


class _OpenFolder:
    """An open folder that is gone on from, one level at a time and through no link."""

    def __init__(self, root: Path) -> None:
        self.folder = _opened(root, None)

    @property
    def identity(self) -> tuple[int, int]:
        status = os.fstat(self.folder)
        return status.st_dev, status.st_ino

    def enter(self, name: str) -> None:
        before, self.folder = self.folder, _opened(name, self.folder)
        os.close(before)

    def leave(self) -> None:
        os.close(self.folder)


def _is_folder(name: str, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _opened(name: str | Path, parent: int | None) -> int:
    """A folder; one whose permissions a command took away is given them back."""
    try:
        folder = os.open(name, objects.DIRECTORY, dir_fd=parent)
    except PermissionError:
        handle = os.open(name, getattr(os, "O_PATH", 0) | objects.DIRECTORY, dir_fd=parent)
        try:
            os.chmod(f"/proc/self/fd/{handle}", 0o755)  # of that very folder, whatever has its name by now
        finally:
            os.close(handle)
        folder = os.open(name, objects.DIRECTORY, dir_fd=parent)
    if os.fstat(folder).st_mode & 0o300 != 0o300:
        os.fchmod(folder, 0o755)
    return folder


def index_line(mode: str, identity: str, name: str) -> bytes:
    """A line for `git update-index --index-info`."""
    return f"{mode} {identity}\t".encode() + os.fsencode(name) + b"\0"
