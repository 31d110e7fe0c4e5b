"""Run a command in a process group of its own, with a time limit, and keep what it printed."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

#: What a child process inherits of the environment: nothing that could hold a key.
_INHERITED = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LD_LIBRARY_PATH")
_ROOM = 1 << 20  # bytes


@dataclass(frozen=True)
class Finished:
    """How a command ended.

    `code` is its exit status (negative: the signal that ended it), `output` stdout and stderr in the order
    written, `seconds` wall time.  A command that was stopped at its limit has `timed_out` and keeps its output.
    """

    code: int
    output: str
    timed_out: bool
    seconds: float

    @property
    def ok(self) -> bool:
        return self.code == 0 and not self.timed_out


def run_group(
    command: str | Sequence[str],
    *,
    cwd: str | Path,
    timeout: float,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    cap: int = 65536,
) -> Finished:
    """Run an argv, or a line for the shell, and wait for it at most `timeout` seconds.

    The whole process group is killed when it ends or when the time is up, so nothing it started in the
    background stays.  The environment is an allow-list plus `env`; `python` is this interpreter.  Output beyond
    `cap` bytes loses its middle.  Raises `OSError` where the command cannot be started.
    """
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    start = time.monotonic()
    # A file and not a pipe: a pipe stays open as long as any descendant lives, which would defeat the limit.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env={**child_environment(), **(env or {})},
            stdin=given,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        timed_out = False
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return Finished(process.returncode, _ends(output, cap), timed_out, time.monotonic() - start)


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


def _ends(file: BinaryIO, cap: int) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size <= cap:
        return file.read().decode("utf-8", "replace")
    head = file.read(cap // 2)
    file.seek(size - cap // 2)
    note = f"\n[{size - 2 * (cap // 2)} bytes left out]\n"
    return head.decode("utf-8", "replace") + note + file.read().decode("utf-8", "replace")
