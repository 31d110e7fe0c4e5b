"""Commands that a model may cause to run: their environment, their time, and a full disk that is not their fault."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rlm_loop.tools.watch import Finished, watch

#: What a child process inherits of the environment: nothing that could hold a key.
_INHERITED = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LD_LIBRARY_PATH")
_ROOM = 1 << 20  # bytes


def run_group(command: str | Sequence[str], *, cwd: str | Path, timeout: float, stdin: bytes = b"") -> Finished:
    """Run an argv, or a line for the shell, and wait for it at most `timeout` seconds.

    The whole process group is killed when it ends or when the time is up, so nothing it started in the
    background stays.  The environment is an allow-list; `python` is this interpreter.  Output beyond 64 KiB loses its
    middle.  Raises `OSError` where the command cannot be started.
    """
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else command
    return watch(argv, cwd=cwd, env=child_environment(), stdin=stdin, timeout=timeout, cap=65536, pause=0.0)


def refuse_full_disk() -> None:
    """Raise `OSError` where temporary files have no room: what ended badly then need not be the command's fault."""
    folder = tempfile.gettempdir()
    if shutil.disk_usage(folder).free < _ROOM:
        raise OSError(errno.ENOSPC, "the disk is full: free some space, or set TMPDIR to another disk", folder)


def child_environment() -> dict[str, str]:
    """The environment of commands that a model may cause to run."""
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {**kept, "PATH": path, "HOME": tempfile.gettempdir(), "PYTHONDONTWRITEBYTECODE": "1"}
