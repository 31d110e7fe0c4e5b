"""What a session owns outside its own memory: a worker, a private folder, a working folder with files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.clearing import remove
from rlm_loop.repl.host.driver import Driver
from rlm_loop.repl.host.lending import Lent
from rlm_loop.repl.host.shielded import shielded


class Belongings:
    """What must be cleared away when a session ends in whatever way."""

    def __init__(self) -> None:
        self.driver: Driver | None = None
        self.cwd: Path | None = None
        self.lent = Lent()
        self._home: Path | None = None
        self._files = 0

    def home(self) -> Path:
        """The private folder: values on their way, the worker's log, and the working folder where none was given."""
        if self._home is None:
            with shielded():
                self._home = Path(tempfile.mkdtemp(prefix="rlm-loop-")).resolve()
        return self._home

    def new_path(self) -> Path:
        self._files += 1
        return self.home() / f"value{self._files}"

    def remove(self) -> None:
        if self._home is not None:
            remove(self._home)

    @staticmethod
    def release(owned: Belongings, pid: int) -> None:
        if os.getpid() != pid:
            return  # a forked copy of the host: the session is not its own
        if owned.driver is not None:
            owned.driver.close()
        owned.remove()


def working_folder(cwd: Path | str | None, home: Callable[[], Path]) -> Path:
    """The folder that was given, or one in the session's private folder; raises `ReplError` where it is missing."""
    if cwd is None:
        folder = home() / "work"
        folder.mkdir(exist_ok=True)
        return folder
    folder = Path(cwd).resolve()
    if not folder.is_dir():
        raise ReplError(f"the working folder {str(cwd)!r} does not exist; create it, or leave cwd out")
    return folder


def check_inside(name: str) -> None:
    """Refuse a file name that leads out of the working folder."""
    if not name or Path(name).is_absolute() or ".." in Path(name).parts:
        raise ValueError(f"file name {name!r} must be relative to the REPL's folder and stay inside it")


def write_files(files: Mapping[str, str | bytes], folder: Path) -> None:
    """Write them byte for byte: no line ending is changed."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
