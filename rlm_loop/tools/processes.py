"""Commands that a model may cause to run: bounded in time and memory, without the user's environment."""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlm_loop.repl.text import Ends, clip_again

#: What a child process inherits of the environment: nothing that could hold a key.
_INHERITED = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LD_LIBRARY_PATH")
_ROOM = 1 << 20  # bytes
_CHUNK = 1 << 16
_HALF = 1 << 15  # characters of the head of an output, and of its tail
_LINE = 1 << 20  # bytes of one line of reports; of a longer one the rest is dropped
_GLANCE = 0.1  # seconds between looks at a process whose pipes say nothing
_DRAIN = 1.0  # seconds for what is still in the pipes after the end


@dataclass(frozen=True)
class Finished:
    """The end of a command.

    `code` is its exit status (negative: the signal that ended it), `output` its text (its middle left out beyond a
    cap), `seconds` wall time.  A command that was stopped at its limit has `timed_out` and keeps its output.
    """

    code: int
    output: str
    timed_out: bool
    seconds: float

    @property
    def ok(self) -> bool:
        return self.code == 0 and not self.timed_out


def refuse_full_disk() -> None:
    """Raise `OSError` where temporary files have no room: a bad end then need not be the command's fault."""
    folder = tempfile.gettempdir()
    if shutil.disk_usage(folder).free < _ROOM:
        raise OSError(errno.ENOSPC, "the disk is full: free some space, or set TMPDIR to another disk", folder)


def child_environment() -> dict[str, str]:
    """Return the environment of a command: an allow-list, with this interpreter as `python`."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {**inherited, "PATH": path, "HOME": tempfile.gettempdir(), "PYTHONDONTWRITEBYTECODE": "1"}


def watch(
    command: str | Sequence[str],
    *,
    cwd: str | Path,
    timeout: float,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    on_line: Callable[[bytes], None] | None = None,
    mark: str = "",
) -> Finished:
    """Run an argv, or a line for the shell, for at most `timeout` seconds and keep 64 Ki characters of its output.

    The output is the head and the tail.  With `on_line`, which is called with each line of standard output, it is
    standard error alone; without, it is both in the order written.  `env` is its environment (default: a child's).
    At the command's end, or the time's, its group is killed, and on Linux every process that has `mark` in its first
    environment: one that made a session of its own is no longer in the group.  Raises `OSError` where the command
    cannot be started.
    """
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else command
    env = child_environment() if env is None else env
    start = time.monotonic()
    pipe = subprocess.PIPE
    errors = pipe if on_line else subprocess.STDOUT
    with tempfile.TemporaryFile() as source:
        source.write(stdin)
        source.seek(0)
        process = subprocess.Popen(
            list(argv), stdin=source, stdout=pipe, stderr=errors, cwd=cwd, env=dict(env), start_new_session=True
        )
    ends, decoded = Ends(_HALF), codecs.getincrementaldecoder("utf-8")("replace")

    def keep(data: bytes) -> None:
        ends.add(decoded.decode(data))

    with process, selectors.DefaultSelector() as streams:
        for stream, sink in ((process.stdout, _lines(on_line) if on_line else keep), (process.stderr, keep)):
            if stream is not None:
                streams.register(stream, selectors.EVENT_READ, sink)
        try:
            while (left := start + timeout - time.monotonic()) > 0 and process.poll() is None:
                _read(streams, min(left, _GLANCE))
            timed_out = process.poll() is None
        finally:
            _kill(process, mark)
        until = time.monotonic() + _DRAIN  # one that escaped may hold the pipes open for ever
        while streams.get_map() and time.monotonic() < until and _read(streams, 0.05):
            pass
    output = clip_again(ends.text(), 2 * _HALF)[0]
    return Finished(process.returncode, output, timed_out, time.monotonic() - start)


def _read(streams: selectors.BaseSelector, seconds: float) -> bool:
    """Read at most a chunk of each stream that has something, or its end; return whether one had."""
    ready = streams.select(seconds)
    for key, _ in ready:
        data = os.read(key.fd, _CHUNK)
        if not data:
            streams.unregister(key.fileobj)
        key.data(data)
    return bool(ready)


def _kill(process: subprocess.Popen[bytes], mark: str) -> None:
    """Kill the group, wait for the process, and kill all that bear the mark."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for entry in os.scandir("/proc") if mark and os.path.isdir("/proc/self") else ():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark.encode() in Path(entry.path, "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)


def _lines(on_line: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """Return a sink that cuts bytes into lines of at most `_LINE`."""
    rest = b""

    def add(data: bytes) -> None:
        nonlocal rest
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            on_line(line)
        rest = rest[:_LINE]

    return add
