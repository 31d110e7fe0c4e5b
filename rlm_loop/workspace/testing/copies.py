"""A copy of a repository to run tests in, so that what they write stays out of the original."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

#: Not copied.  Byte code can be made to hide the source beside it (PEP 552, unchecked); a checkout's `.git` leads
#: back to the repository that it was made from.
LEFT_OUT = frozenset([".git", "__pycache__", ".pytest_cache"])


def copy_tree(source: Path, target: Path) -> None:
    """Copy the files below `source`, with modes and times; links stay links, and devices and sockets are left out.

    Raises `OSError` where something cannot be read or written.
    """
    folders = [(os.fspath(source), os.fspath(target))]
    while folders:
        source_folder, copy = folders.pop()
        os.mkdir(copy)
        for entry in os.scandir(source_folder):
            if entry.name in LEFT_OUT:
                continue
            to = os.path.join(copy, entry.name)
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), to)
            elif entry.is_dir():
                folders.append((entry.path, to))
            elif stat.S_ISREG(entry.stat().st_mode) and not entry.name.endswith(".pyc"):
                shutil.copy2(entry.path, to)
        os.chmod(copy, stat.S_IMODE(os.stat(source_folder).st_mode) | stat.S_IRWXU)


def stamps(root: Path, names: Iterable[str]) -> Mapping[str, tuple[int, int, int]]:
    """Which file each of these names is (inode), and when it was last written to, renamed or given other rights.

    That time (ctime) only the kernel sets: unlike the content and the time of modification it cannot be put back.
    """
    found: dict[str, tuple[int, int, int]] = {}
    for name in names:
        with contextlib.suppress(OSError):
            about = os.lstat(root / name)
            found[name] = (about.st_ino, about.st_ctime_ns, about.st_mode)
    return found
