"""Run git so that no configuration, hook, filter, clock or network of the machine has a say."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rlm_loop.errors import ShownBriefly
from rlm_loop.tools.processes import child_environment

#: Bytes are kept as they are, and shown as text, whatever a `.gitattributes` of the repository says.
_PLAIN = "* -text -eol -filter -ident -working-tree-encoding !diff !whitespace\n"

_NOBODY = {"NAME": "rlm-loop", "EMAIL": "rlm-loop@localhost", "DATE": "2000-01-01T00:00:00Z"}
_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # older gits do not know the line above: then no way to fetch is allowed
    "GIT_NO_REPLACE_OBJECTS": "1",
    **{f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in _NOBODY.items()},
    "LC_ALL": "C",
}
_SETTINGS = {
    "checkout.workers": "0",  # as many as there are cores: laying out files is most of what a workspace costs
    "core.hooksPath": os.devnull,
    "core.excludesFile": os.devnull,
    "core.attributesFile": os.devnull,
    "core.fsmonitor": "false",  # in a repository's own configuration it names a program to run
    "core.fsync": "none",  # a throw-away folder need not outlive a power cut
    "core.compression": "0",
    "core.looseCompression": "0",
    "init.defaultBranch": "main",
    "pack.writeReverseIndex": "false",
}


class WorkspaceError(ShownBriefly, Exception):
    """A checkout could not be made or used: git is missing or failed, a source is unfit, a patch does not apply."""


@dataclass(frozen=True)
class Git:
    """git on one repository.

    `git_dir` is its folder, `work_tree` that of its files, if there are any; `seconds` is the most that one command may
    take.
    """

    git_dir: Path
    work_tree: Path | None = None
    seconds: float = 300.0

    @property
    def folder(self) -> Path:
        return self.work_tree or self.git_dir

    def __call__(self, *arguments: str, stdin: bytes = b"", **env: str) -> bytes:
        """Return what it prints.  Raises `WorkspaceError` on an exit status other than 0."""
        if not self.folder.is_dir():
            raise WorkspaceError("the workspace is closed: open a new one")
        settings = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
        try:
            done = subprocess.run(
                ["git", *settings, f"--git-dir={self.git_dir}", f"--work-tree={self.folder}", *arguments],
                cwd=self.folder,
                env={**child_environment(), **_ENVIRONMENT, **env},
                input=stdin,
                capture_output=True,
                check=False,
                timeout=self.seconds,
            )
        except FileNotFoundError:
            raise WorkspaceError("this needs git, which was not found: install it and put it on the PATH") from None
        except subprocess.TimeoutExpired:
            raise WorkspaceError(f"git {arguments[0]} took more than {self.seconds:g} s and was ended") from None
        if done.returncode:
            raise WorkspaceError(f"git failed: {_reason(done.stderr, done.returncode)}")
        return done.stdout


def prepare(git: Git) -> None:
    """Make an empty repository with no say of the machine or of its files in what git does."""
    git.git_dir.mkdir(parents=True, exist_ok=True)
    git("init", "-q", "--template=")
    (git.git_dir / "info").mkdir(exist_ok=True)
    (git.git_dir / "info" / "attributes").write_text(_PLAIN)


def mirror(url: str, target: Path) -> None:
    """Clone a repository with all its refs, bare.  Raises `WorkspaceError` where that fails.

    This is the one command that reaches out, so it has the user's own settings: proxies, certificates, credentials.
    """
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    argv = ["git", "clone", "--quiet", "--mirror", "--", url, str(target)]
    done = subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode:
        raise WorkspaceError(f"git failed: {_reason(done.stderr, done.returncode)}")


def _reason(complaint: bytes, code: int) -> str:
    return " ".join(complaint.decode("utf-8", "replace").split())[:500] or f"exit status {code}"
