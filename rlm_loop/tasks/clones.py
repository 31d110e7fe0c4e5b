"""Local git repositories as they lie there, only read: which commits they have, and where the clone of a name is."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rlm_loop.models.weights import cache_folder
from rlm_loop.workspace import WorkspaceError, sources
from rlm_loop.workspace.git import Git, mirror

_SECONDS = 3600.0  # that one command may take: the log of a large repository takes minutes


class CloneError(ValueError):
    """A repository, or a commit of it, that is not there; the message is one line that says what to do."""


def own_folder(name: str) -> Path:
    """A folder of this name in the user's cache: below `$RLM_LOOP_CACHE`, else the platform's for `rlm-loop`."""
    return cache_folder().with_name(name)


@dataclass(frozen=True)
class Clone:
    """A repository on this machine: a checkout or a bare mirror.  Nothing of it is ever changed."""

    path: Path

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> Clone:
        """The repository whose top folder this is.  Raises `CloneError` where it is none."""
        folder = Path(path).expanduser().resolve()
        if not folder.is_dir():
            raise CloneError(f"there is no folder {path}; name a local clone or bare mirror of a git repository")
        try:
            known = sources.find(folder) is not None
        except WorkspaceError as error:
            raise CloneError(str(error)) from None
        if not known and any(os.path.lexists(above / ".git") for above in folder.parents):
            raise CloneError(f"{path} is a folder inside a git repository; name its top folder")
        if not known:
            raise CloneError(f"{path} is no git repository; name a local clone or bare mirror")
        return cls(folder)

    @cached_property
    def _git(self) -> Git:
        inner = self.path / ".git"
        return Git(inner, self.path, seconds=_SECONDS) if os.path.lexists(inner) else Git(self.path, seconds=_SECONDS)

    def git(self, *arguments: str) -> str:
        """The output of a git command that only reads; bytes that are no UTF-8 become surrogates."""
        return self.raw(*arguments).decode("utf-8", "surrogateescape")

    def raw(self, *arguments: str) -> bytes:
        """The same as bytes.  Raises `CloneError` with what git says."""
        try:
            return self._git(*arguments)
        except WorkspaceError as error:
            raise CloneError(f"{error} (in {self.path})") from None

    @property
    def name(self) -> str:
        """OWNER/NAME by the address of `origin`, else `local/` and the folder's name."""
        try:
            url = self.git("config", "--get", "remote.origin.url").strip()
        except CloneError:
            url = ""
        hosted = re.fullmatch(r"(?:[a-z+]+://|[^/@]+@)[^/:]+[/:](?:.*/)?([\w.-]+)/([\w.-]+?)(?:\.git)?/?", url)
        if hosted:
            return f"{hosted[1]}/{hosted[2]}"
        plain = re.sub(r"[^\w.-]+", "-", self.path.name.removesuffix(".git")).strip("-.") or "repository"
        return f"local/{plain}"

    @property
    def shallow(self) -> bool:
        """The clone lacks the older part of its history."""
        return self.git("rev-parse", "--is-shallow-repository").strip() == "true"

    def has(self, commit: str) -> bool:
        """The commit and its whole tree's entry are here."""
        try:
            self.git("cat-file", "-e", f"{commit}^{{tree}}")
        except CloneError:
            return False
        return True

    def need(self, commit: str, why: str) -> None:
        """Raise `CloneError` that says how to get it, if the commit is not here."""
        if not self.has(commit):
            how = "git fetch --unshallow" if self.shallow else f"git fetch origin {commit}"
            kind = "shallow clone" if self.shallow else "clone"
            raise CloneError(f"{why}: the {kind} {self.path} has no commit {commit[:12]}; run `{how}` in it")


def find_clone(name: str, folder: str | os.PathLike[str]) -> Clone:
    """The clone of `OWNER/NAME` in a folder: a checkout or a bare mirror called `OWNER__NAME`, `OWNER__NAME.git`,
    `OWNER/NAME`, `OWNER-NAME` or `NAME`.  Raises `CloneError` that says what was looked for."""
    top = Path(folder).expanduser()
    if not top.is_dir():
        raise CloneError(f"there is no folder {folder} of repositories; make it, or name another with repos=")
    owner, _, short = name.partition("/")
    names = [f"{owner}__{short}", f"{owner}/{short}", f"{owner}-{short}", short] if short else [owner]
    for candidate in (top / f"{n}{end}" for n in names for end in ("", ".git")):
        if candidate.is_dir():
            return Clone.at(candidate)
    wanted = names[0]
    raise CloneError(
        f"there is no clone of {name} in {folder}: put a checkout or bare mirror there as {wanted}, for example with "
        f"`git clone --mirror https://github.com/{name}.git {top / wanted}.git`, or ask for it with clone=True"
    )


def fetch_clone(name: str, folder: str | os.PathLike[str], url: str) -> Clone:
    """Make a bare mirror `OWNER__NAME.git` in a folder from an address.  Raises `CloneError` where that fails.

    The clone appears under its name only when it is whole, so an interrupted one is never taken for it.
    """
    top = Path(folder).expanduser()
    top.mkdir(parents=True, exist_ok=True)
    target = top / f"{name.replace('/', '__')}.git"
    part = top / f".{target.name}.{os.getpid()}.part"
    try:
        mirror(url, part)
        part.rename(target)
    except WorkspaceError as error:
        said = str(error).partition(": ")[2]
        raise CloneError(
            f"cannot clone {name} from {url} ({said[:200]}); go online, or put a clone at {target} yourself"
        ) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return Clone.at(target)
