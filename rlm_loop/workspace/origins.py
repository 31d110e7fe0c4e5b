"""Where the files of a workspace come from: given in memory, a folder, a git repository, an archive."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rlm_loop.tools import code as code_tools
from rlm_loop.workspace import archives, objects, user_repository
from rlm_loop.workspace.git import Git, WorkspaceError
from rlm_loop.workspace.objects import Blob, BlobStore

Source = Mapping[str, str | bytes] | str | os.PathLike[str]


@dataclass(frozen=True)
class Filled:
    """What is known of the files that an origin laid out.

    `blobs` are files whose content is stored already, by name; `tree` is the tree they make where it is known;
    `submodules` are folders that belong to other repositories and were left empty.
    """

    blobs: Mapping[str, Blob] = field(default_factory=dict[str, Blob])
    tree: str = ""
    submodules: tuple[str, ...] = ()


class CheckedSource(Protocol):
    """A source that was looked at and found fit."""

    @property
    def object_format(self) -> str: ...

    @property
    def commit(self) -> str: ...

    def fill(self, own: Git) -> Filled:
        """Lay the files out in the work tree of `own`, a fresh repository of ours."""
        ...


def recognise(source: Source, commit: str | None) -> CheckedSource:
    """What a source is.  Raises `WorkspaceError` in one line where it is nothing to make a workspace of."""
    if isinstance(source, Mapping):
        origin: CheckedSource = _Given(source)
    else:
        path = Path(source)
        if path.is_file():
            origin = _Archive(path)
        elif not path.is_dir():
            raise WorkspaceError(f"{path} is not a folder or archive: give an existing one or a mapping of files")
        elif (user := user_repository.find(path.resolve())) is not None:
            if commit is None and user.work_tree is not None:
                return _WorkingCopy(user)
            return Stored.at(user, "HEAD" if commit is None else commit)
        else:
            origin = _Folder(path.resolve())
    if commit is not None:
        what = "a mapping" if isinstance(source, Mapping) else str(source)
        raise WorkspaceError(f"commit {commit!r} needs a git repository, and {what} is none: leave the commit out")
    return origin


@dataclass(frozen=True)
class Stored:
    """A tree in a repository: its objects are copied as they lie in there, packed, and so is nothing besides."""

    git: Git
    tree: str
    object_format: str
    commit: str = ""

    @classmethod
    def at(cls, git: Git, commit: str) -> Stored:
        name = user_repository.resolve(git, commit)
        tree = git("rev-parse", "--verify", f"{name}^{{tree}}").decode().strip()
        return cls(git, tree, user_repository.object_format(git), name)

    def fill(self, own: Git) -> Filled:
        reader = Git(own.git_dir, own.work_tree, user_repository.object_folders(self.git))
        try:
            files, ids = objects.listed(reader, self.tree)
            with _pack(reader, ids):
                reader("read-tree", "-u", "--reset", self.tree)
        except WorkspaceError as error:
            raise user_repository.explained(self.git, error) from None
        inner = tuple(name for name, blob in files.items() if blob.mode == objects.SUBMODULE)
        return Filled(files, self.tree, inner)


@dataclass(frozen=True)
class _WorkingCopy:
    """The files of a repository as they lie now, committed or not; those that it ignores are left out."""

    git: Git
    commit: str = ""

    @property
    def object_format(self) -> str:
        return user_repository.object_format(self.git)

    def fill(self, own: Git) -> Filled:
        names, ids, inner = user_repository.working_files(self.git)
        store = BlobStore(own.git_dir, self.object_format, ids)
        reader = Git(own.git_dir, own.work_tree, user_repository.object_folders(self.git))
        assert self.git.work_tree is not None
        assert own.work_tree is not None
        try:
            # Contents that the repository has are taken from its packs, which is faster than to write them anew.
            with _pack(reader, sorted(ids)):
                return Filled(_copy(self.git.work_tree, names, own.work_tree, store), submodules=inner)
        except WorkspaceError as error:
            raise user_repository.explained(self.git, error) from None


@dataclass(frozen=True)
class _Folder:
    """All files below a folder that is no repository; git's own files are left out."""

    path: Path
    object_format: str = "sha1"
    commit: str = ""

    def fill(self, own: Git) -> Filled:
        assert own.work_tree is not None
        return Filled(_copy(self.path, _names(self.path), own.work_tree, BlobStore(own.git_dir, self.object_format)))


@dataclass(frozen=True)
class _Given:
    files: Mapping[str, str | bytes]
    object_format: str = "sha1"
    commit: str = ""

    def fill(self, own: Git) -> Filled:
        assert own.work_tree is not None
        for name, content in self.files.items():
            target = code_tools.inside(own.work_tree, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)
        return Filled()


@dataclass(frozen=True)
class _Archive:
    path: Path
    object_format: str = "sha1"
    commit: str = ""

    def fill(self, own: Git) -> Filled:
        assert own.work_tree is not None
        archives.extract(self.path, own.work_tree)
        return Filled()


def _pack(reader: Git, ids: Iterable[str]) -> AbstractContextManager[None]:
    """Take these objects over, compressed as they lie there, while the body runs."""
    settings = ("-q", "--window=0", "--delta-base-offset", "--threads=1")
    place = str(reader.git_dir / "objects" / "pack" / "pack")
    return reader.meanwhile("pack-objects", *settings, place, stdin="".join(f"{i}\n" for i in ids).encode())


def _names(root: Path) -> Iterable[str]:
    for folder, below, here in os.walk(root):
        below[:] = [name for name in below if name.casefold() != ".git"]
        links = [name for name in below if os.path.islink(os.path.join(folder, name))]
        for name in [*here, *links]:
            if name.casefold() != ".git":
                yield os.path.relpath(os.path.join(folder, name), root)


def _copy(source: Path, names: Iterable[str], root: Path, store: BlobStore) -> dict[str, Blob]:
    """Copy files and links with their times, and store their contents on the way."""
    copied: dict[str, Blob] = {}
    made: set[str] = set()
    for name in names:
        found = objects.read(source, name)
        if found is None:  # gone meanwhile, or a pipe or device
            continue
        mode, content, status = found
        target = os.path.join(root, name)
        if (folder := os.path.dirname(target)) not in made:
            os.makedirs(folder, exist_ok=True)
            made.add(folder)
        if mode == objects.LINK:
            os.symlink(content, target)
        else:
            objects.write(target, content, executable=mode == objects.EXECUTABLE)
            os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
        copied[name] = Blob(mode, store.add(content))
    return copied
