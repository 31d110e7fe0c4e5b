"""A user's git repository, which is only ever read."""

from __future__ import annotations

import os
from pathlib import Path

from rlm_loop.workspace.git import Git, WorkspaceError
from rlm_loop.workspace.objects import SUBMODULE


def find(folder: Path) -> Git | None:
    """The repository that a folder is, with its files or bare; None where it is an ordinary folder."""
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
        raise WorkspaceError(f"{folder} is not a repository that git can read: {_said(error)}") from None
    return git


def resolve(git: Git, commit: str) -> str:
    """The full id of a commit, named as git names commits.  Raises `WorkspaceError` where it is not there."""
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


def object_format(git: Git) -> str:
    return git("rev-parse", "--show-object-format").decode().strip()


def object_folders(git: Git) -> tuple[Path, ...]:
    """Where its objects lie; git itself finds those that it borrows in turn."""
    said = git("rev-parse", "--git-path", "objects").removesuffix(b"\n")
    return ((git.work_tree or git.git_dir) / os.fsdecode(said),)


def working_files(git: Git) -> tuple[list[str], set[str], tuple[str, ...]]:
    """The names of the files that it has or could add, the blobs that its index names, and its submodules."""
    names: dict[str, None] = {}
    ids: set[str] = set()
    inner: dict[str, None] = {}
    for line in git("ls-files", "-z", "--stage").split(b"\0")[:-1]:
        head, _, name = line.partition(b"\t")
        mode, identity, _stage = head.decode().split(" ")
        if mode == SUBMODULE:
            inner[os.fsdecode(name)] = None
        else:
            names[os.fsdecode(name)] = None
            ids.add(identity)
    others = git("ls-files", "-z", "--others", "--exclude-standard").split(b"\0")[:-1]
    names.update((os.fsdecode(name), None) for name in others if not name.endswith(b"/"))  # "/": a repository in it
    asked = "".join(f"{identity}\n" for identity in sorted(ids)).encode()
    known = git("cat-file", "--batch-check", stdin=asked).decode().splitlines()
    there = {line.split(" ")[0] for line in known if not line.endswith(" missing")}
    return list(names), there, tuple(inner)


def explained(git: Git, error: WorkspaceError) -> WorkspaceError:
    """An error met while reading its objects, with the likely reason where there is one."""
    if "the disk is full" in str(error):
        return error
    place = git.work_tree or git.git_dir
    if any((object_folders(git)[0] / "pack").glob("*.promisor")):
        return WorkspaceError(
            f"{place} is a partial clone that lacks objects: run git fetch --refetch --no-filter there"
        )
    return WorkspaceError(f"the objects of {place} cannot be read: {_said(error)}")


def _said(error: WorkspaceError) -> str:
    return str(error).removeprefix("git failed: ").removeprefix("fatal: ")
