"""Where the files of a workspace come from: given in memory, a folder, a git repository, an archive."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rlm_loop.tools import code as code_tools
from rlm_loop.workspace import archives
from rlm_loop.workspace.git import Git, WorkspaceError
from rlm_loop.workspace.trees import SUBMODULE

Source = Mapping[str, str | bytes] | str | os.PathLike[str]


@dataclass(frozen=True)
class CheckedSource:
    """A source that was looked at and found fit.

    `fill` lays its files out in the work tree of a fresh repository of ours, whose index has them then; it returns the
    folders that belong to other repositories and were left empty.
    """

    fill: Callable[[Git, Path], Iterable[str]]
    object_format: str = "sha1"
    commit: str = ""


def recognise(source: Source, commit: str | None) -> CheckedSource:
    """Return the source as it is to be filled in; raise `WorkspaceError` where there is nothing to work on."""
    if isinstance(source, Mapping):
        origin = CheckedSource(partial(_added, partial(_given, source)))
    else:
        path = Path(source)
        if path.is_file():
            origin = CheckedSource(partial(_added, partial(archives.extract, path)))
        elif not path.is_dir():
            raise WorkspaceError(f"{path} is not a folder or archive: give an existing one or a mapping of files")
        elif (user := find(path.resolve())) is not None:
            return _repository(user, commit)
        else:
            folder = path.resolve()
            origin = CheckedSource(partial(_added, lambda root: _copy(folder, _names(folder), root)))
    if commit is not None:
        what = "a mapping" if isinstance(source, Mapping) else str(source)
        raise WorkspaceError(f"commit {commit!r} needs a git repository, and {what} is none: leave the commit out")
    return origin


def find(folder: Path) -> Git | None:
    """Return the repository that a folder is, with its files or bare; None where it is an ordinary folder."""
    inner = folder / ".git"
    if os.path.lexists(inner):
        git = Git(inner, folder)
    elif (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir():
        git = Git(folder)
    else:
        return None
    try:
        git("rev-parse", "--git-dir")
    except WorkspaceError as error:
        raise WorkspaceError(f"{folder} is not a repository that git can read: {_cause(error)}") from None
    return git


def stored(git: Git, tree: str, object_format: str, commit: str) -> CheckedSource:
    """Return a tree in a repository as a source: its objects are copied as they lie in there, and nothing besides."""

    def fill(own: Git, root: Path) -> Iterable[str]:
        del root
        lies_in = git("rev-parse", "--git-path", "objects").removesuffix(b"\n")
        objects = (git.work_tree or git.git_dir) / os.fsdecode(lies_in)
        reader = Git(own.git_dir, own.work_tree, (objects,))
        settings = ("-q", "--revs", "--window=0", "--delta-base-offset", "--threads=1")
        pack = str(own.git_dir / "objects" / "pack" / "pack")
        try:
            with reader.meanwhile("pack-objects", *settings, pack, stdin=f"{tree}\n".encode()):
                reader("read-tree", "-u", "--reset", tree)
        except WorkspaceError as error:
            raise _explained(git, objects, error) from None
        return _submodules(own)

    return CheckedSource(fill, object_format, commit)


def _repository(user: Git, commit: str | None) -> CheckedSource:
    object_format = user("rev-parse", "--show-object-format").decode().strip()
    if commit is None and user.work_tree is not None:
        return CheckedSource(partial(_working_copy, user, user.work_tree), object_format)
    name = _resolve(user, "HEAD" if commit is None else commit)
    tree = user("rev-parse", "--verify", f"{name}^{{tree}}").decode().strip()
    return stored(user, tree, object_format, name)


def _resolve(git: Git, commit: str) -> str:
    """Return the full id of a commit, named as git names commits; raise `WorkspaceError` where it is not there."""
    wanted = f"{commit}^{{commit}}"
    found = git("rev-parse", "--verify", "--quiet", "--end-of-options", wanted, also=(1, 128)).decode().strip()
    if found:
        return found
    place = git.work_tree or git.git_dir
    if commit == "HEAD":
        raise WorkspaceError(f"{place} has no commit yet: commit something, or give a folder of files")
    hint = "see `git log`"
    if git("rev-parse", "--is-shallow-repository").strip() == b"true":
        hint = f"it is a shallow clone, fetch more of it: git fetch --depth=1 origin {commit}"
    raise WorkspaceError(f"{place} has no commit {commit!r}: {hint}")


def _working_copy(user: Git, place: Path, own: Git, root: Path) -> Iterable[str]:
    """Copy the files of a repository as they lie now, committed or not; those that it ignores are left out."""
    inner = _submodules(user)
    listing = user("ls-files", "-z", "--cached", "--others", "--exclude-standard").split(b"\0")[:-1]
    names = dict.fromkeys(os.fsdecode(name) for name in listing if not name.endswith(b"/"))  # "/": a repository in it
    _added(lambda root: _copy(place, [name for name in names if name not in inner], root), own, root)
    return inner


def _submodules(git: Git) -> tuple[str, ...]:
    lines = git("ls-files", "-z", "--stage").split(b"\0")
    return tuple(os.fsdecode(line.partition(b"\t")[2]) for line in lines if line.startswith(SUBMODULE.encode()))


def _added(lay_out: Callable[[Path], None], own: Git, root: Path) -> Iterable[str]:
    """Lay files out and add all of them to the index."""
    lay_out(root)
    own("-c", "core.bigFileThreshold=1", "add", "--all", "--force", ".")  # so all go into one pack, not a file each
    return ()


def _given(files: Mapping[str, str | bytes], root: Path) -> None:
    for name, content in files.items():
        code_tools.write_bytes(root, name, content.encode() if isinstance(content, str) else content)


def _names(root: Path) -> Iterable[str]:
    for folder, below, here in os.walk(root):
        below[:] = [name for name in below if name.casefold() != ".git"]
        links = [name for name in below if os.path.islink(os.path.join(folder, name))]
        for name in [*here, *links]:
            if name.casefold() != ".git":
                yield os.path.relpath(os.path.join(folder, name), root)


def _copy(source: Path, names: Iterable[str], root: Path) -> None:
    """Copy files and links with their times; what is gone meanwhile, and pipes and devices, are left out."""
    made: set[str] = set()
    for name in names:
        origin, target = os.path.join(source, name), os.path.join(root, name)
        try:
            status = os.lstat(origin)
        except (FileNotFoundError, NotADirectoryError):
            continue
        if (folder := os.path.dirname(target)) not in made:
            os.makedirs(folder, exist_ok=True)
            made.add(folder)
        if stat.S_ISLNK(status.st_mode):
            os.symlink(os.readlink(origin), target)
        elif stat.S_ISREG(status.st_mode):
            shutil.copyfile(origin, target, follow_symlinks=False)
            os.chmod(target, 0o755 if status.st_mode & 0o100 else 0o644)
            os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _explained(git: Git, objects: Path, error: WorkspaceError) -> WorkspaceError:
    """Return an error met while reading a user's objects, with the likely reason where there is one."""
    if "the disk is full" in str(error):
        return error
    place = git.work_tree or git.git_dir
    if any((objects / "pack").glob("*.promisor")):
        return WorkspaceError(
            f"{place} is a partial clone that lacks objects: run git fetch --refetch --no-filter there"
        )
    return WorkspaceError(f"the objects of {place} cannot be read: {_cause(error)}")


def _cause(error: WorkspaceError) -> str:
    return str(error).removeprefix("git failed: ").removeprefix("fatal: ")
