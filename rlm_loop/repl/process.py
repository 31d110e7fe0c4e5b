"""The host's end of the worker: start it, write frames, read frames, interrupt it, kill it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.launch import Launcher

_ONE_WRITE = 32_768  # fits a pipe, so one system call writes all of it
_LONGEST = 1 << 30  # characters of a frame; a worker that sends more is out of its mind


_dumps = json.JSONEncoder(separators=(",", ":")).encode  # made once, not for every frame
_parse = json.JSONDecoder().raw_decode


class WorkerGone(Exception):
    """The supervisor ended (not only the REPL in it)."""


class Running(Protocol):
    """A started worker: its pipes, and how to learn of its end and to force it."""

    stdin: int
    stdout: int

    def wait(self, seconds: float) -> int | None:
        """The exit status, or `None` when it has not ended within so many seconds."""
        ...

    def kill(self, repl_pid: int | None) -> None:
        """End the supervisor and the REPL by force, if they run."""
        ...

    def release(self) -> None:
        """Close the pipes."""
        ...


Starter = Callable[[Mapping[str, Any], Path, Path], Running]
"""Starts a worker, given its options, its working folder, and the file for its complaints."""


class Spawned:
    """A worker started as a program of its own."""

    def __init__(self, launcher: Launcher, python: str, options: Mapping[str, Any], cwd: Path, log: Path) -> None:
        self._launch = launch = launcher(python, json.dumps(options))
        try:
            with log.open("wb") as err:
                # A session of its own: Ctrl-C in the terminal reaches the host, which decides what it means.
                self._popen = subprocess.Popen(
                    launch.argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=err,
                    env=dict(launch.env),
                    cwd=cwd,
                    bufsize=0,
                    start_new_session=True,
                )
        except OSError as e:
            raise ReplError(f"cannot start the REPL with {launch.argv[0]!r}: {e.strerror or e}") from e
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self.stdin, self.stdout = self._popen.stdin.fileno(), self._popen.stdout.fileno()

    def wait(self, seconds: float) -> int | None:
        try:
            return self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self, repl_pid: int | None) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        for pid in _in_session(self._popen.pid, repl_pid):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self._popen.wait()
        self._launch.cleanup()

    def release(self) -> None:
        for stream in (self._popen.stdin, self._popen.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()


def _in_session(session: int, told: int | None) -> list[int]:
    """The processes of a session.  Linux lists them; elsewhere the group that the worker named, if it is in it.

    A number out of the worker alone is not enough: it may be forged, or be that of another pid namespace.
    """
    found: list[int] = []
    with contextlib.suppress(OSError):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                if os.getsid(int(pid)) == session:
                    found.append(int(pid))
        return found
    with contextlib.suppress(OSError):
        if told is not None and os.getsid(told) == session:
            return [-told]
    return []


def _forged(line: bytes, kind: Any) -> bool:
    """Whether a frame says what only a supervisor may say, but came from the REPL: such lines begin with a blank."""
    return line.startswith(b" ") and kind in ("died", "out")


def program_starter(launcher: Launcher, python: str) -> Starter:
    return lambda options, cwd, log: Spawned(launcher, python, options, cwd, log)


class WorkerProcess:
    """A running worker.  Frames that it sends are checked for form only: what they say is not to be trusted."""

    def __init__(self, start: Starter, options: Mapping[str, Any], cwd: Path, log: Path) -> None:
        self._running, self._log = start(options, cwd, log), log
        self._in, self._out = self._running.stdin, self._running.stdout
        self._wake_r, self._wake_w = os.pipe()
        os.set_blocking(self._wake_w, False)
        self._writing = threading.Lock()
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        self._poll.register(self._wake_r, select.POLLIN)
        self._partial: list[bytes] = []
        self._frames: deque[dict[str, Any]] = deque()
        self._closed = False
        self.repl_pid: int | None = None
        """The REPL's process id, once it said hello."""

    def send(self, frame: dict[str, Any]) -> None:
        """Write one frame.  Safe from any thread."""
        self._write(_dumps(frame).encode() + b"\n")

    def control(self, word: str) -> None:
        """Tell the supervisor: `int`, `kill` or `quit`.  A worker that is gone is not an error."""
        with contextlib.suppress(WorkerGone):
            self._write(b"!" + word.encode() + b"\n")

    def _write(self, data: bytes) -> None:
        if len(data) <= _ONE_WRITE or threading.current_thread() is not threading.main_thread():
            self._write_all(data)
            return
        # Ctrl-C must not leave half a frame in the pipe, so a thread that gets no signals writes a long one.
        failure: list[WorkerGone] = []

        def work() -> None:
            try:
                self._write_all(data)
            except WorkerGone as e:
                failure.append(e)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join()
        if failure:
            raise failure[0]

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        with self._writing:
            if self._closed:
                raise WorkerGone
            try:
                while view:
                    view = view[os.write(self._in, view) :]
            except OSError as e:
                raise WorkerGone from e

    def wake(self) -> None:
        """Make a waiting `receive` return `None` now.  Safe from any thread."""
        with contextlib.suppress(OSError):
            os.write(self._wake_w, b"!")

    def receive(self, seconds: float) -> dict[str, Any] | None:
        """The next frame, or `None` when there is none in time or `wake` was called.

        Raises `WorkerGone` at the end of the stream.
        """
        if self._frames:
            return self._frames.popleft()
        ready = [fd for fd, _ in self._poll.poll(max(0.0, seconds) * 1000)]
        if self._wake_r in ready:
            os.read(self._wake_r, 4096)
        if self._out in ready:
            data = os.read(self._out, 1 << 16)
            if not data:
                raise WorkerGone
            self._take(data)
        return self._frames.popleft() if self._frames else None

    def _take(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = b"".join(self._partial) + lines[0]
            self._partial.clear()
        if rest:
            self._partial.append(rest)
            if len(self._partial) % 1024 == 0 and sum(map(len, self._partial)) > _LONGEST:
                self._partial.clear()
        for line in lines:
            try:
                text = line.decode()
                frame: Any
                frame, end = _parse(text, line.startswith(b" "))  # the blank says that it came from the REPL
            except (ValueError, RecursionError):
                continue  # junk that a cell wrote to our descriptor
            if end == len(text) and isinstance(frame, dict) and "t" in frame and not _forged(line, frame["t"]):
                self._frames.append(cast("dict[str, Any]", frame))

    def complaint(self) -> str:
        """The last line that the worker wrote before it ended, for a message about a failed start."""
        with contextlib.suppress(OSError):
            lines = self._log.read_text("utf-8", "replace").strip().splitlines()
            return lines[-1] if lines else ""
        return ""

    def close(self, patience: float = 1.0) -> None:
        """End the supervisor and with it the REPL and its children; by force if it does not within `patience`."""
        if self._closed:
            return
        if self._writing.acquire(timeout=patience):
            self._closed = True
            with contextlib.suppress(OSError):
                os.write(self._in, b"!quit\n")
            self._writing.release()
        self._closed = True
        status = None
        try:
            status = self._running.wait(patience)
        finally:
            if status != 0:  # 0: the supervisor has cleared up; else it was stuck, or was killed
                self._running.kill(self.repl_pid)
            self._running.release()
            os.close(self._wake_r)
            os.close(self._wake_w)
