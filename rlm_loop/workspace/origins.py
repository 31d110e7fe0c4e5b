"""Where the files of a workspace come from: given in memory, a folder, a git repository, an archive."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

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


@dataclass(frozen=True)
class CheckedSource:
    """A source that was looked at and found fit.

    `fill` lays its files out in a folder, the work tree of a fresh repository of ours.
    """

    fill: Callable[[Git, Path], Filled]
    object_format: str = "sha1"
    commit: str = ""


def recognise(source: Source, commit: str | None) -> CheckedSource:
    """What a source is.  Raises `WorkspaceError` in one line where it is nothing to make a workspace of."""
    if isinstance(source, Mapping):
        origin = CheckedSource(partial(_given, source))
    else:
        path = Path(source)
        if path.is_file():
            origin = CheckedSource(partial(_archive, path))
        elif not path.is_dir():
            raise WorkspaceError(f"{path} is not a folder or archive: give an existing one or a mapping of files")
        elif (user := user_repository.find(path.resolve())) is not None:
            return _repository(user, commit)
        else:
            origin = CheckedSource(partial(_folder, path.resolve()))
    if commit is not None:
        what = "a mapping" if isinstance(source, Mapping) else str(source)
        raise WorkspaceError(f"commit {commit!r} needs a git repository, and {what} is none: leave the commit out")
    return origin


def _repository(user: Git, commit: str | None) -> CheckedSource:
    object_format = user_repository.object_format(user)
    if commit is None and user.work_tree is not None:
        return CheckedSource(partial(_working_copy, user, user.work_tree), object_format)
    name = user_repository.resolve(user, "HEAD" if commit is None else commit)
    tree = user("rev-parse", "--verify", f"{name}^{{tree}}").decode().strip()
    return stored(user, tree, object_format, name)


def stored(git: Git, tree: str, object_format: str, commit: str) -> CheckedSource:
    """A tree in a repository: its objects are copied as they lie in there, packed, and nothing besides."""

    def fill(own: Git, root: Path) -> Filled:
        del root
        with _reading(git, own) as reader:
            files, ids = objects.listed(reader, tree)
            with _pack(reader, ids):
                reader("read-tree", "-u", "--reset", tree)
        return Filled(files, tree, tuple(name for name, blob in files.items() if blob.mode == objects.SUBMODULE))

    return CheckedSource(fill, object_format, commit)


def _working_copy(user: Git, place: Path, own: Git, root: Path) -> Filled:
    """The files of a repository as they lie now, committed or not; those that it ignores are left out."""
    names, ids, inner = user_repository.working_files(user)
    store = BlobStore(own.git_dir, user_repository.object_format(user), ids)
    # Contents that the repository has are taken from its packs, which is faster than to write them anew.
    with _reading(user, own) as reader, _pack(reader, sorted(ids)):
        return Filled(_copy(place, names, root, store), submodules=inner)


def _folder(path: Path, own: Git, root: Path) -> Filled:
    """All files below a folder that is no repository; git's own files are left out."""
    return Filled(_copy(path, _names(path), root, BlobStore(own.git_dir, "sha1")))


def _given(files: Mapping[str, str | bytes], own: Git, root: Path) -> Filled:
    del own
    for name, content in files.items():
        code_tools.write_bytes(root, name, content.encode() if isinstance(content, str) else content)
    return Filled()


def _archive(path: Path, own: Git, root: Path) -> Filled:
    del own
    archives.extract(path, root)
    return Filled()


@contextmanager
def _reading(user: Git, own: Git) -> Generator[Git]:
    """Our repository with a user's objects at hand; where git fails in the body, the error is of the user's."""
    reader = Git(own.git_dir, own.work_tree, user_repository.object_folders(user))
    try:
        yield reader
    except WorkspaceError as error:
        raise user_repository.explained(user, error) from None


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
