"""The process, folders and files of a session, outside of its own memory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.contexts.on_disk import ContextFolder, OnDisk
from rlm_loop.repl.host.clearing import remove
from rlm_loop.repl.host.driver import Driver
from rlm_loop.repl.host.shielded import shielded

_SEE_EVERYTHING = ("plain", "kernel", "custom")


class Resources:
    """The REPL, folders and files of a session; `release` clears them away when the session ends."""

    def __init__(self) -> None:
        self.driver: Driver | None = None
        self.cwd: Path | None = None
        self.lent = Lent()
        self._home: Path | None = None
        self._files = 0

    def home(self) -> Path:
        """Return the private folder: values on their way, the REPL's log, the working folder if none was given."""
        if self._home is None:
            with shielded():
                self._home = Path(tempfile.mkdtemp(prefix="rlm-loop-")).resolve()
        return self._home

    def folder(self, given: Path | str | None, files: Mapping[str, str | bytes]) -> Path:
        """Return the working folder: the one that was given, or one in the private folder.  The files are written once.

        Raises `ReplError` where there is no folder of that name.
        """
        if self.cwd is None:
            if given is None:
                cwd = self.home() / "work"
                cwd.mkdir(exist_ok=True)
            elif not (cwd := Path(given).resolve()).is_dir():
                raise ReplError(f"the working folder {str(given)!r} does not exist; create it, or leave cwd out")
            for name, content in files.items():  # byte for byte: no line ending is changed
                path = cwd / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
            self.cwd = cwd
        return self.cwd

    def new_path(self) -> Path:
        self._files += 1
        return self.home() / f"value{self._files}"

    def remove(self) -> None:
        if self._home is not None:
            remove(self._home)

    @staticmethod
    def release(owned: Resources, pid: int) -> None:
        if os.getpid() != pid:
            return  # a forked copy of the host: the session is not its own
        if owned.driver is not None:
            owned.driver.close()
        owned.remove()


class Lent:
    """Files and folders of the user that the cells may read.  The launcher is given `paths` at each start.

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
