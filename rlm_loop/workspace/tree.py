"""Trees in a repository of ours: made from blobs, compared, laid out as files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from rlm_loop.workspace import objects
from rlm_loop.workspace.git import Git
from rlm_loop.workspace.objects import Blob


class Index:
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
        gone = [_line("0", "0" * len(had[name].id), name) for name in had.keys() - wanted.keys()]
        new = [_line(b.mode, b.id, name) for name, b in wanted.items() if (old := had.get(name)) is not b and old != b]
        if gone or new:
            self._tree = ""
            lines = b"".join([*gone, *new])  # in this order a file may become a folder, or the reverse
            self._git("update-index", "--replace", "-z", "--index-info", stdin=lines, GIT_INDEX_FILE=self._file)
            self._blobs = wanted
        if not self._tree:
            self._tree = self._git("write-tree", GIT_INDEX_FILE=self._file).decode().strip()
        return self._tree


def changed(git: Git, before: str, after: str) -> dict[str, tuple[str, Blob | None]]:
    """By name, how a file differs: git's letter (A, D, M, T), and what it is afterwards."""
    if before == after:
        return {}
    fields = git("diff-tree", "-r", "-z", "--no-renames", before, after).split(b"\0")
    found: dict[str, tuple[str, Blob | None]] = {}
    for head, name in zip(fields[::2], fields[1::2], strict=False):
        _, mode, _, identity, letter = head.decode().split(" ")
        found[os.fsdecode(name)] = (letter, None if letter == "D" else Blob(mode, identity))
    return found


def lay_out(git: Git, root: Path, wanted: Mapping[str, Blob | None]) -> None:
    """Write these files, and remove those that are None; nothing is written through a link."""
    for name, blob in wanted.items():
        if blob is None:
            _remove(root, name)
    contents = objects.contents(git, {blob.id for blob in wanted.values() if blob and blob.mode != objects.SUBMODULE})
    for name, blob in wanted.items():
        if blob is not None and blob.mode != objects.SUBMODULE:
            _write(root, name, blob.mode, contents[blob.id])


def _remove(root: Path, name: str) -> None:
    place = root
    for part in name.split("/"):
        if place.is_symlink() or not place.is_dir():
            return  # something else took the place of its folder, so the file is gone
        _open(place)
        place /= part
    if place.is_dir() and not place.is_symlink():
        return
    place.unlink(missing_ok=True)
    for folder in place.parents:
        if folder == root or any(folder.iterdir()):
            return
        folder.rmdir()


def _write(root: Path, name: str, mode: str, content: bytes) -> None:
    *folders, last = name.split("/")
    place = root
    _open(place)
    for folder in folders:
        place /= folder
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            place.unlink()
        place.mkdir(exist_ok=True)
        _open(place)
    place /= last
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    if mode == objects.LINK:
        place.symlink_to(os.fsdecode(content))
    else:
        objects.write(place, content, executable=mode == objects.EXECUTABLE)


def _open(folder: Path) -> None:
    """Let us write in a folder of ours whose permissions a command took away."""
    if not os.access(folder, os.W_OK | os.X_OK):
        folder.chmod(0o755)


def _line(mode: str, identity: str, name: str) -> bytes:
    return f"{mode} {identity}\t".encode() + os.fsencode(name) + b"\0"
