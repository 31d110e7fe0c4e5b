"""Which files and folders of the user's a session lends to its cells, and how they reach those that are isolated."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from rlm_loop.repl.contexts.on_disk import ContextFolder, OnDisk

_SEE_EVERYTHING = ("plain", "kernel", "custom")


class Lent:
    """What has been lent.  `paths` are told to the launcher at each start, which makes them readable in place.

    A launcher cannot open a door later on, so what is lent after the start is copied into the session's private
    folder, which isolated cells see; and so is what they may not read where it lies, because they run as another user
    than root.
    """

    def __init__(self) -> None:
        self.paths: list[str] = []

    def reach(self, isolation: str, started: bool) -> Callable[[OnDisk, Path], Path]:
        """The function that `set_frame` asks where the cells find a file or folder: in place, or as a copy."""

        def at(value: OnDisk, copy: Path) -> Path:
            if isolation in _SEE_EVERYTHING or (str(value.path) in self.paths and _readable(value)):
                return value.path
            if started or not _readable(value):
                return _copied(value, copy)
            self.paths.append(str(value.path))
            return value.path

        return at

    def take_over(self, other: Lent) -> None:
        """Lend what another session lent."""
        self.paths += [path for path in other.paths if path not in self.paths]


def _readable(value: OnDisk) -> bool:
    """Whether cells may read it in place; where the host is root, isolated ones are some other user."""
    if os.geteuid() != 0:
        return True
    if isinstance(value, ContextFolder):
        files = [value.path / name for name in value.sizes]
        folders = {parent for file in files for parent in file.parents if parent.is_relative_to(value.path)}
        return all(_open(p, 0o005) for p in {value.path, *folders}) and all(_open(file, 0o004) for file in files)
    return _open(value.path, 0o004)


def _open(path: Path, wanted: int) -> bool:
    try:
        return path.stat().st_mode & wanted == wanted
    except OSError:
        return True  # it has gone meanwhile, which whoever reads it is told


def _copied(value: OnDisk, copy: Path) -> Path:
    names = value.sizes if isinstance(value, ContextFolder) else ("",)
    for name in names:
        target = copy / name if name else copy
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(value.path / name if name else value.path, target)
        target.chmod(0o644)
    if isinstance(value, ContextFolder):
        copy.mkdir(exist_ok=True)
    return copy
