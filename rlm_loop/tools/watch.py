"""Start a process in a group of its own, follow its two streams in bounded memory, and leave nothing of it running."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 1 << 16
_LINE = 1 << 20  # bytes of one line of reports; a longer one is nobody's
_GLANCE = 0.1  # seconds between looks at a process whose pipes somebody else holds open
_LITTLE, _PAUSE = 1 << 14, 0.025  # bytes; seconds, in which a pipe takes 64 KiB
_DRAIN = 1.0  # seconds for what is still in the pipes after the end


@dataclass(frozen=True)
class Finished:
    """How a command ended.

    `code` is its exit status (negative: the signal that ended it), `output` what it printed (its middle left out beyond
    a cap), `seconds` wall time.  A command that was stopped at its limit has `timed_out` and keeps its output.
    """

    code: int
    output: str
    timed_out: bool
    seconds: float

    @property
    def ok(self) -> bool:
        return self.code == 0 and not self.timed_out


def watch(
    argv: Sequence[str],
    *,
    cwd: str | Path,
    env: Mapping[str, str],
    stdin: bytes,
    timeout: float,
    cap: int,
    on_line: Callable[[bytes], None] | None = None,
    mark: str = "",
    pause: float = _PAUSE,
) -> Finished:
    """Run a command for at most `timeout` seconds and keep `cap` bytes of its output, head and tail.

    With `on_line`, which is given each line of standard output, the output is standard error alone; without, it is both
    in the order written.  At the command's end, or the time's, its group is killed, and on Linux every process that has
    `mark` in its first environment: one that made a session of its own is no longer in the group.  `pause` is the time
    in seconds for which small reports gather, so that listening takes no turns with what is watched.  Raises `OSError`
    where the command cannot be started.
    """
    start = time.monotonic()
    with tempfile.TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(env),
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if on_line else subprocess.STDOUT,
            start_new_session=True,
        )
    ends = _Ends(cap)
    sinks = ((process.stdout, _Lines(on_line).add if on_line else ends.add), (process.stderr, ends.add))
    with contextlib.ExitStack() as opened:
        streams = opened.enter_context(selectors.DefaultSelector())
        for stream, sink in sinks:
            if stream is not None:
                opened.enter_context(stream)
                os.set_blocking(stream.fileno(), False)
                streams.register(stream, selectors.EVENT_READ, sink)
        try:
            timed_out = _follow(process, streams, start + timeout, pause)
        finally:
            _end(process, mark)
        _drain(streams, time.monotonic() + _DRAIN)
    return Finished(process.returncode, ends.text(), timed_out, time.monotonic() - start)


def _follow(process: subprocess.Popen[bytes], streams: selectors.BaseSelector, deadline: float, pause: float) -> bool:
    """Read until the process ends, whoever else holds its pipes; whether the time was up first."""
    while streams.get_map():
        left = deadline - time.monotonic()
        if left <= 0:
            return process.poll() is None
        heard = _read(streams, min(left, _GLANCE))
        if process.poll() is not None:  # others may hold its pipes, silent or writing without end
            return False
        if 0 < heard < _LITTLE:  # many small reports are read together, or each would take turns with a test
            time.sleep(min(left, pause))
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return True
    return False


def _read(streams: selectors.BaseSelector, seconds: float) -> int:
    """What there is, at most a chunk of each; 0 where nothing was to be heard, not even an end."""
    ready = streams.select(seconds)
    size = len(ready)
    for key, _ in ready:
        data = b""
        with contextlib.suppress(BlockingIOError):
            data = os.read(key.fd, _CHUNK)
            if not data:
                streams.unregister(key.fileobj)
        key.data(data)
        size += len(data)
    return size


def _drain(streams: selectors.BaseSelector, deadline: float) -> None:
    """What is still in the pipes; someone who escaped may hold them open for ever."""
    while streams.get_map() and time.monotonic() < deadline and _read(streams, 0.05):
        pass


def _end(process: subprocess.Popen[bytes], mark: str) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pid in _bearers(mark) if mark else ():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _bearers(mark: str) -> list[int]:
    needle, found = mark.encode(), list[int]()
    for entry in os.scandir("/proc") if os.path.isdir("/proc/self") else ():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError), open(f"{entry.path}/environ", "rb") as file:
                if needle in file.read():
                    found.append(int(entry.name))
    return found


class _Lines:
    def __init__(self, on_line: Callable[[bytes], None]) -> None:
        self._on_line, self._rest, self._skipping = on_line, b"", False

    def add(self, data: bytes) -> None:
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            if not self._skipping:
                self._on_line(line)
            self._skipping = False
        if len(self._rest) > _LINE:
            self._rest, self._skipping = b"", True


class _Ends:
    """The first and the last bytes of a stream of any length."""

    def __init__(self, cap: int) -> None:
        self._half = cap // 2
        self._head, self._tail, self._size = b"", bytearray(), 0

    def add(self, data: bytes) -> None:
        self._size += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._half + _CHUNK:
            del self._tail[: -self._half]

    def text(self) -> str:
        tail = bytes(self._tail[-self._half :]) if self._half else b""
        left = self._size - len(self._head) - len(tail)
        note = f"\n[{left} bytes left out]\n" if left else ""
        return self._head.decode("utf-8", "replace") + note + tail.decode("utf-8", "replace")
