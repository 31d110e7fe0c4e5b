"""The process, folders and files of a session, outside of its own memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.clearing import remove
from rlm_loop.repl.host.driver import Driver
from rlm_loop.repl.host.shielded import shielded


class Resources:
    """The REPL, folders and files of a session; `release` clears them away when the session ends."""

    def __init__(self) -> None:
        self.driver: Driver | None = None
        self.cwd: Path | None = None
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

    @staticmethod
    def release(owned: Resources, pid: int) -> None:
        if os.getpid() != pid:
            return  # a forked copy of the host: the session is not its own
        if owned.driver is not None:
            owned.driver.close()
        if owned._home is not None:
            remove(owned._home)
