"""Sources of a workspace's files: memory, a folder, a git repository."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rlm_loop.tools.code import write_bytes
from rlm_loop.workspace.files import names_below
from rlm_loop.workspace.git import Git, WorkspaceError
from rlm_loop.workspace.trees import SUBMODULE, in_index

Source = Mapping[str, str | bytes] | str | os.PathLike[str]


def lay_out(source: Source, commit: str | None, own: Git, root: Path) -> str:
    """Lay a source's files out in the work tree of a fresh repository of ours, whose index has them then.

    Returns the id of their commit ("": none).  Raises `WorkspaceError` where the source is unfit.
    """
    if isinstance(source, Mapping):
        user = None
    elif not os.path.isdir(source):
        raise WorkspaceError(f"{os.fspath(source)} is not a folder: give an existing one or a mapping of files")
    elif (user := find(Path(source).resolve())) is not None and (commit is not None or user.work_tree is None):
        return _commit(user, "HEAD" if commit is None else commit, own)
    if commit is not None:
        raise WorkspaceError(f"commit {commit!r} needs a git repository, and the source is none: leave the commit out")
    if user is not None:
        _working_copy(user, own, root)
    elif isinstance(source, Mapping):
        for name, content in source.items():
            write_bytes(root, name, content.encode() if isinstance(content, str) else content)
        _add_all(own)
    else:
        _copied(Path(source).resolve(), names_below(Path(source).resolve()), own, root)
    return ""


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
        raise WorkspaceError(f"{folder} is not a repository that git can read: {error}") from None
    return git


def _commit(user: Git, commit: str, own: Git) -> str:
    """Copy the objects of a commit's files as they lie in a user's repository, and nothing besides; return its id."""
    try:
        name = user("rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}").decode().strip()
    except WorkspaceError as error:
        raise WorkspaceError(f"{user.folder} has no commit {commit!r}: {error}") from None
    tree = user("rev-parse", "--verify", f"{name}^{{tree}}")
    objects = user.folder / os.fsdecode(user("rev-parse", "--git-path", "objects").removesuffix(b"\n"))
    # For commands that only read: to write an object that is there already, git would set the time of the user's file.
    quoted = json.dumps(str(objects), ensure_ascii=False)  # as git splits the list at colons
    borrow: dict[str, Any] = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted}
    pack = str(own.git_dir / "objects" / "pack" / "pack")
    settings = ("-q", "--revs", "--window=0", "--delta-base-offset", "--threads=1")
    with ThreadPoolExecutor(1) as beside:
        packed = beside.submit(own, "pack-objects", *settings, pack, stdin=tree, **borrow)
        own("read-tree", "-u", "--reset", tree.decode().strip(), **borrow)
        packed.result()
    return name


def _working_copy(user: Git, own: Git, root: Path) -> None:
    """Copy the files of a repository as they lie now, committed or not; those that it ignores are left out."""
    indexed = in_index(user)
    inner = {name: blob.id for name, blob in indexed.items() if blob.mode == SUBMODULE}
    others = user("ls-files", "-z", "--others", "--exclude-standard").split(b"\0")[:-1]
    names = {*indexed, *(os.fsdecode(name) for name in others if not name.endswith(b"/"))}  # "/": a repository in it
    _copied(user.folder, names - inner.keys(), own, root)
    for name, commit in inner.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        own("update-index", "--add", "--cacheinfo", f"{SUBMODULE},{commit},{name}")


def _copied(source: Path, names: Iterable[str], own: Git, root: Path) -> None:
    """Copy files and links with their times; what is gone meanwhile, and pipes and devices, are left out."""
    for name in names:
        origin, target = os.path.join(source, name), os.path.join(root, name)
        if os.path.islink(origin) or os.path.isfile(origin):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(origin, target, follow_symlinks=False)
            if not os.path.islink(target):
                os.chmod(target, 0o755 if os.access(target, os.X_OK) else 0o644)
    _add_all(own)


def _add_all(own: Git) -> None:
    own("-c", "core.bigFileThreshold=1", "add", "--all", "--force", ".")  # in one pack, not an object a file
