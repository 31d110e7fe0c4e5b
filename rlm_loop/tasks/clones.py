"""Local git repositories as they lie there, only read: which commits they have, and where the clone of a name is."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from rlm_loop.workspace import WorkspaceError, sources
from rlm_loop.workspace.git import Git, mirror


class CloneError(ValueError):
    """A repository, or a commit of it, that is not there; the message is one line that says what to do."""


@dataclass(frozen=True)
class Clone:
    """A repository on this machine: a checkout or a bare mirror.  Nothing of it is ever changed."""

    path: Path

    @classmethod
    def at(cls, path: Path) -> Clone:
        """Return the repository whose top folder this is.  Raises `CloneError` where it is none."""
        folder = path.resolve()
        try:
            known = sources.find(folder) is not None
        except WorkspaceError as error:
            raise CloneError(str(error)) from None
        if not known:
            raise CloneError(f"{path} is no git repository; name a local clone or bare mirror")
        return cls(folder)

    def _git(self, *arguments: str) -> str:
        inner = self.path / ".git"
        git = Git(inner, self.path) if os.path.lexists(inner) else Git(self.path)
        return git(*arguments).decode("utf-8", "surrogateescape").strip()

    def need(self, commit: str, why: str) -> None:
        """Raise `CloneError` that says how to get it, if the commit is not here."""
        try:
            self._git("cat-file", "-e", f"{commit}^{{tree}}")
        except WorkspaceError:
            shallow = self._git("rev-parse", "--is-shallow-repository") == "true"
            how = "git fetch --unshallow" if shallow else f"git fetch origin {commit}"
            kind = "shallow clone" if shallow else "clone"
            lacks = f"the {kind} {self.path} has no commit {commit[:12]}; run `{how}` in it"
            raise CloneError(f"{why}: {lacks}") from None


def find_clone(name: str, folder: str | os.PathLike[str]) -> Clone:
    """Return the clone of `OWNER/NAME` in a folder: a checkout or a bare mirror called `OWNER__NAME` or `NAME`, with or
    without `.git`.  Raises `CloneError` that says what was looked for."""
    top = Path(folder).expanduser()
    if not top.is_dir():
        raise CloneError(f"there is no folder {folder} of repositories; make it, or name another with repos=")
    wanted = name.replace("/", "__")
    for candidate in (top / f"{n}{end}" for n in (wanted, name.rpartition("/")[2]) for end in ("", ".git")):
        if candidate.is_dir():
            return Clone.at(candidate)
    raise CloneError(
        f"there is no clone of {name} in {folder}: put a checkout or bare mirror there as {wanted}, for example with "
        f"`git clone --mirror https://github.com/{name}.git {top / wanted}.git`, or ask for it with clone=True"
    )


def fetch_clone(name: str, folder: str | os.PathLike[str], url: str) -> Clone:
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
    return Clone.at(target)
