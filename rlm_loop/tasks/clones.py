"""Local git repositories as they lie there, only read: which commits they have, and where the clone of a name is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from rlm_loop.workspace import WorkspaceError, sources
from rlm_loop.workspace.git import Git, mirror


class CloneError(ValueError):
    """A repository, or a commit of it, that is not there; the message is one line that says what to do."""


def clone_at(path: Path) -> Git:
    """Return the repository whose top folder this is: a checkout or a bare mirror.  Raises `CloneError` for none."""
    try:
        git = sources.find(path.resolve())
    except WorkspaceError as error:
        raise CloneError(str(error)) from None
    if git is None:
        raise CloneError(f"{path} is no git repository; name a local clone or bare mirror")
    return git


def need(git: Git, commit: str, why: str) -> None:
    """Raise `CloneError` that says how to get it, if the commit is not in a clone."""
    try:
        git("cat-file", "-e", f"{commit}^{{tree}}")
    except WorkspaceError:
        shallow = git("rev-parse", "--is-shallow-repository").strip() == b"true"
        how = "git fetch --unshallow" if shallow else f"git fetch origin {commit}"
        kind = "shallow clone" if shallow else "clone"
        lacks = f"the {kind} {git.folder} has no commit {commit[:12]}; run `{how}` in it"
        raise CloneError(f"{why}: {lacks}") from None


def find_clone(name: str, folder: str | os.PathLike[str]) -> Git:
    """Return the clone of `OWNER/NAME` in a folder: a checkout or a bare mirror called `OWNER__NAME` or `NAME`, with or
    without `.git`.  Raises `CloneError` that says what was looked for."""
    top = Path(folder).expanduser()
    if not top.is_dir():
        raise CloneError(f"there is no folder {folder} of repositories; make it, or name another with repos=")
    wanted = name.replace("/", "__")
    for candidate in (top / f"{n}{end}" for n in (wanted, name.rpartition("/")[2]) for end in ("", ".git")):
        if candidate.is_dir():
            return clone_at(candidate)
    raise CloneError(
        f"there is no clone of {name} in {folder}: put a checkout or bare mirror there as {wanted}, for example with "
        f"`git clone --mirror https://github.com/{name}.git {top / wanted}.git`, or ask for it with clone=True"
    )


def fetch_clone(name: str, folder: str | os.PathLike[str], url: str) -> Git:
    """Make a bare mirror `OWNER__NAME.git` in a folder from an address.  Raises `CloneError` where that fails.

    The clone appears under its name only when it is complete, so an interrupted one is never taken for it.
    """
    top = Path(folder).expanduser()
    top.mkdir(parents=True, exist_ok=True)
    target = top / f"{name.replace('/', '__')}.git"
    part = top / f".{target.name}.{os.getpid()}.part"
    try:
        mirror(url, part)
        part.rename(target)
    except WorkspaceError as error:
        reason = str(error).partition(": ")[2][:200]
        how = f"go online, or put a clone at {target} yourself"
        raise CloneError(f"cannot clone {name} from {url} ({reason}); {how}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return clone_at(target)
