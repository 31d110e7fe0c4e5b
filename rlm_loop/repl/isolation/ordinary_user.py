"""The ordinary user that cells run as where the host is root, made up for the session."""

from __future__ import annotations

import os
import pwd
import random
from pathlib import Path

from rlm_loop.repl.base import ReplError

_FIRST, _LAST = 61184, 65519  # what systemd keeps for users that exist only while a service runs
_NOBODY = 65534


class RootFolder(ReplError):
    """The working folder belongs to root, so that no ordinary user could work in it."""


def cell_user(cwd: Path, home: Path) -> tuple[int, int] | None:
    """User and group for the cells of a session; `None` where this process is no root, and they are its own.

    The owner of the working folder, else a user that nobody has, to whom the session's private folder is given.
    Raises `RootFolder` where the working folder was given, belongs to root and is closed to others.
    """
    if os.geteuid() != 0:
        return None
    about = cwd.stat()
    if about.st_uid != 0:
        user = (about.st_uid, about.st_gid or about.st_uid)
    else:
        user = (_free(), _NOBODY)
        if cwd.is_relative_to(home):
            _give(home, user)
        elif about.st_mode & 0o007 != 0o007:
            raise RootFolder(
                f"cells do not run as root when isolated, and the working folder {str(cwd)!r} belongs to root: "
                "give it to an ordinary user (chown), or leave cwd out"
            )
    if home.stat().st_uid == 0:
        os.chown(home, *user)  # it stays closed to all others
    return user


def may_read(paths: list[str]) -> bool:
    """Return True if any user may read these folders and files."""
    try:
        real = [Path(p).resolve(strict=True) for p in paths]
        wanted = [(p, 0o005 if p.is_dir() else 0o004) for p in real]
        wanted += [(folder, 0o001) for p in real for folder in p.parents]
        return all(p.stat().st_mode & rights == rights for p, rights in wanted)
    except OSError:
        return False


def _free() -> int:
    """A user id that no account has; sessions side by side get different ones, so none can touch another."""
    taken = {account.pw_uid for account in pwd.getpwall()}
    return random.SystemRandom().choice([n for n in range(_FIRST, _LAST + 1) if n not in taken])


def _give(folder: Path, user: tuple[int, int]) -> None:
    """Hand over a folder with what is in it; links are not followed."""
    for _, folders, files, place in os.fwalk(folder):
        for name in [*folders, *files]:
            os.chown(name, *user, dir_fd=place, follow_symlinks=False)
    os.chown(folder, *user)
