"""Local clones of the repositories that instances start from."""

from __future__ import annotations

import shutil
from pathlib import Path

from rlm_loop.workspace import WorkspaceError, sources
from rlm_loop.workspace.git import Git, mirror


class CloneError(ValueError):
    """A repository, or a commit of it, that is not there; the message is one line that says what to do."""


def clone_of(name: str, folder: Path, url: str = "") -> Git:
    """Return the clone of `OWNER/NAME` in a folder: a checkout or a bare mirror called `OWNER__NAME` or `NAME`, with or
    without `.git`.

    Where there is none, a bare mirror is made of `url`, if that is given; it appears under its name only when it is
    complete.  Raises `CloneError` that says what was looked for.
    """
    wanted = folder / name.replace("/", "__")
    found = [p for p in (wanted, folder / name.rpartition("/")[2]) for p in (p, p.with_name(f"{p.name}.git"))]
    path = next((p for p in found if p.is_dir()), None)
    try:
        if path is None and url:
            path, part = found[1], wanted.with_name(f".{wanted.name}.part")
            shutil.rmtree(part, ignore_errors=True)  # of a clone that was interrupted
            folder.mkdir(parents=True, exist_ok=True)
            mirror(url, part)
            part.rename(path)
        git = None if path is None else sources.find(path.resolve())
    except WorkspaceError as error:
        raise CloneError(f"there is no clone of {name} in {folder}, and none could be made: {error}") from None
    if git is None:
        how = f"put one there with `git clone --mirror https://github.com/{name}.git {wanted}.git`, or use clone=True"
        raise CloneError(f"there is no clone of {name} in {folder}: {how}")
    return git


def need(git: Git, commit: str, why: str) -> None:
    """Raise `CloneError` that says how to get it, if the commit is not in a clone."""
    try:
        git("cat-file", "-e", f"{commit}^{{tree}}")
    except WorkspaceError:
        how = f"run `git fetch origin {commit}` in it"
        raise CloneError(f"{why}: the clone {git.folder} has no commit {commit[:12]}; {how}") from None
