"""Where the files of a workspace come from: given in memory, a folder, a git repository."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rlm_loop.tools import code as code_tools
from rlm_loop.workspace.git import Git, WorkspaceError
from rlm_loop.workspace.trees import SUBMODULE

Source = Mapping[str, str | bytes] | str | os.PathLike[str]
_LARGE = 1 << 18  # bytes from which on a file is hashed faster for an object of its own than for a pack


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
        origin = CheckedSource(partial(_given, source))
    elif not os.path.isdir(source):
        raise WorkspaceError(f"{os.fspath(source)} is not a folder: give an existing one or a mapping of files")
    else:
        folder = Path(source).resolve()
        if (user := find(folder)) is not None:
            return _repository(user, commit)
        origin = CheckedSource(lambda own, root: _copied(folder, _names(folder), own, root))
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


def _repository(user: Git, commit: str | None) -> CheckedSource:
    object_format = user("rev-parse", "--show-object-format").decode().strip()
    if commit is None and user.work_tree is not None:
        return CheckedSource(partial(_working_copy, user, user.work_tree), object_format)
    wanted = "HEAD" if commit is None else commit
    place = user.work_tree or user.git_dir
    answer = user("rev-parse", "--verify", "--quiet", "--end-of-options", f"{wanted}^{{commit}}", also=(1, 128))
    if not (name := answer.decode().strip()):
        if wanted == "HEAD":
            raise WorkspaceError(f"{place} has no commit yet: commit something, or give a folder of files")
        shallow = user("rev-parse", "--is-shallow-repository").strip() == b"true"
        hint = f"it is a shallow clone, fetch more of it: git fetch --depth=1 origin {wanted}"
        raise WorkspaceError(f"{place} has no commit {wanted!r}: {hint if shallow else 'see `git log`'}")
    return CheckedSource(partial(_commit, user, name), object_format, name)


def _commit(user: Git, commit: str, own: Git, root: Path) -> Iterable[str]:
    """Copy the objects of a commit's files as they lie in a user's repository, and nothing besides."""
    del root
    place = user.work_tree or user.git_dir
    try:
        tree = user("rev-parse", "--verify", f"{commit}^{{tree}}")
        objects = place / os.fsdecode(user("rev-parse", "--git-path", "objects").removesuffix(b"\n"))
        reader = replace(own, objects=objects)
        pack = str(own.git_dir / "objects" / "pack" / "pack")
        settings = ("-q", "--revs", "--window=0", "--delta-base-offset", "--threads=1")
        with ThreadPoolExecutor(1) as beside:
            packed = beside.submit(reader, "pack-objects", *settings, pack, stdin=tree)
            reader("read-tree", "-u", "--reset", tree.decode().strip())
            packed.result()
    except WorkspaceError as error:
        if "the disk is full" in str(error):
            raise
        raise WorkspaceError(f"the objects of {place} cannot be read: {_cause(error)}") from None
    return _submodules(own)


def _working_copy(user: Git, place: Path, own: Git, root: Path) -> Iterable[str]:
    """Copy the files of a repository as they lie now, committed or not; those that it ignores are left out."""
    inner = _submodules(user)
    listing = user("ls-files", "-z", "--cached", "--others", "--exclude-standard").split(b"\0")[:-1]
    names = dict.fromkeys(os.fsdecode(name) for name in listing if not name.endswith(b"/"))  # "/": a repository in it
    _copied(place, [name for name in names if name not in inner], own, root)
    return inner


def _submodules(git: Git) -> tuple[str, ...]:
    lines = git("ls-files", "-z", "--stage").split(b"\0")
    return tuple(os.fsdecode(line.partition(b"\t")[2]) for line in lines if line.startswith(SUBMODULE.encode()))


def _given(files: Mapping[str, str | bytes], own: Git, root: Path) -> Iterable[str]:
    for name, content in files.items():
        code_tools.write_bytes(root, name, content.encode() if isinstance(content, str) else content)
    return _added(own, [])


def _names(root: Path) -> Iterable[str]:
    for folder, below, here in os.walk(root):
        below[:] = [name for name in below if name.casefold() != ".git"]
        links = [name for name in below if os.path.islink(os.path.join(folder, name))]
        for name in [*here, *links]:
            if name.casefold() != ".git":
                yield os.path.relpath(os.path.join(folder, name), root)


def _copied(source: Path, names: Iterable[str], own: Git, root: Path) -> Iterable[str]:
    """Copy files and links with their times; what is gone meanwhile, and pipes and devices, are left out."""
    made, large = set[str](), list[str]()
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
            large += [name] if status.st_size >= _LARGE else []
    return _added(own, large)


def _added(own: Git, large: Iterable[str]) -> Iterable[str]:
    """Add all files to the index: large ones as objects of their own, the others in one pack."""
    if names := b"".join(os.fsencode(name) + b"\0" for name in large):
        own("update-index", "--add", "-z", "--stdin", stdin=names)
    own("-c", "core.bigFileThreshold=1", "add", "--all", "--force", ".")
    return ()


def _cause(error: WorkspaceError) -> str:
    return str(error).removeprefix("git failed: ").removeprefix("fatal: ")
