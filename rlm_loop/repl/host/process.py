"""The host's end of a worker whose frames are forwarded by its supervisor, and how any worker is started."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.frames import OF_SUPERVISOR, FrameReader, dumps
from rlm_loop.repl.host.launch import Launcher

_ONE_WRITE = 32_768  # fits a pipe, so one system call writes all of it


class WorkerGone(Exception):
    """The supervisor ended (not only the REPL in it)."""


class Running(Protocol):
    """A started worker: its pipes, or the socket that is its descriptor 0, and how to learn of its end and force it."""

    stdin: int
    stdout: int
    line: socket.socket | None

    def wait(self, seconds: float) -> int | None:
        """The exit status, or `None` when it has not ended within so many seconds."""
        ...

    def kill(self, repl_pid: int | None) -> None:
        """End the supervisor and the REPL by force, if they run."""
        ...

    def release(self) -> None:
        """Close the pipes, or the socket."""
        ...


Starter = Callable[[Mapping[str, Any], Path, Path], Running]
"""Starts a worker, given its options, its working folder, and the file for its complaints."""


class Spawned:
    """A worker started as a program of its own.

    `direct`: the program that the launcher starts passes its descriptor 0 on, also where that is a socket.
    """

    def __init__(
        self, launcher: Launcher, python: str, direct: bool, options: Mapping[str, Any], cwd: Path, log: Path
    ) -> None:
        options = {**options, "direct": True} if direct else options
        self._launch = launch = launcher(python, json.dumps(options))
        ours, theirs = socket.socketpair() if direct else (None, None)
        try:
            with log.open("wb") as err:
                # A session of its own: Ctrl-C in the terminal reaches the host, which decides what it means.
                self._popen = subprocess.Popen(
                    launch.argv,
                    stdin=subprocess.PIPE if theirs is None else theirs.fileno(),
                    stdout=subprocess.PIPE if theirs is None else subprocess.DEVNULL,
                    stderr=err,
                    env=dict(launch.env),
                    cwd=cwd,
                    bufsize=0,
                    start_new_session=True,
                )
        except OSError as e:
            if ours is not None:
                ours.close()
            raise ReplError(f"cannot start the REPL with {launch.argv[0]!r}: {e.strerror or e}") from e
        finally:
            if theirs is not None:
                theirs.close()
        self.line, self.stdin, self.stdout = ours, -1, -1
        if self._popen.stdin is not None and self._popen.stdout is not None:
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
        for stream in (self._popen.stdin, self._popen.stdout, self.line):
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


class Worker:
    """A running worker, whichever way its frames take.  What they say, on `source`, is not to be trusted."""

    def __init__(self, running: Running, log: Path, source: int) -> None:
        self._running, self._log = running, log
        self._wake_r, self._wake_w = os.pipe()
        os.set_blocking(self._wake_w, False)
        self._poll = select.poll()
        self._poll.register(source, select.POLLIN)
        self._poll.register(self._wake_r, select.POLLIN)
        self._frames: deque[dict[str, Any]] = deque()
        self._closed = False
        self.repl_pid: int | None = None
        """The REPL's process id, once it said hello."""
        self.fault = ""
        """Why the host had the REPL killed, where it broke the protocol; whoever reports it empties it."""

    def send(self, frame: Mapping[str, Any]) -> None:
        """Write one frame; raises `WorkerGone`.  Safe from any thread."""
        raise NotImplementedError

    def control(self, word: str) -> None:
        """Tell the supervisor: `int`, `kill` or `quit`.  A worker that is gone is not an error."""
        raise NotImplementedError

    def wake(self) -> None:
        """Make a waiting `receive` return `None` now.  Safe from any thread."""
        with contextlib.suppress(OSError):
            os.write(self._wake_w, b"!")

    def receive(self, seconds: float) -> dict[str, Any] | None:
        """The next frame, or `None` when there is none in time or `wake` was called.

        Raises `WorkerGone` at the end of the stream.
        """
        raise NotImplementedError

    def last_words(self) -> Iterable[dict[str, Any]]:
        """Frames of what cells printed, of a worker whose supervisor does not answer; nothing is received after it."""
        return ()

    def complaint(self) -> str:
        """The last line that the worker wrote before it ended, for a message about a failed start."""
        with contextlib.suppress(OSError):
            lines = self._log.read_text("utf-8", "replace").strip().splitlines()
            return lines[-1] if lines else ""
        return ""

    def close(self, patience: float = 1.0) -> None:
        """End the supervisor and with it the REPL and its children; by force if it does not within `patience`."""
        raise NotImplementedError

    def _end(self, patience: float) -> None:
        """Wait for the supervisor, which was told to quit; by force if it does not."""
        status = None
        try:
            status = self._running.wait(patience)
        finally:
            if status != 0:  # 0: the supervisor has cleared up; else it was stuck, or was killed
                self._running.kill(self.repl_pid)
            self._running.release()
            os.close(self._wake_r)
            os.close(self._wake_w)


class WorkerProcess(Worker):
    """A worker of which the supervisor forwards all frames, what cells print among them."""

    def __init__(self, running: Running, log: Path) -> None:
        super().__init__(running, log, running.stdout)
        self._in, self._out = running.stdin, running.stdout
        self._writing = threading.Lock()
        self._reader = FrameReader()
        self._raw: list[bytes] = []

    def send(self, frame: Mapping[str, Any]) -> None:
        self._write(dumps(frame) + b"\n")

    def control(self, word: str) -> None:
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

    def receive(self, seconds: float) -> dict[str, Any] | None:
        if self._frames:
            return self._frames.popleft()
        ready = [fd for fd, _ in self._poll.poll(max(0.0, seconds) * 1000)]
        if self._wake_r in ready:
            os.read(self._wake_r, 4096)
        if self._out in ready:
            if not self._raw:  # read and kept in one call, so that Ctrl-C in between loses nothing
                self._raw.extend(map(os.read, (self._out,), (1 << 16,)))
            data = self._raw.pop()
            if not data:
                raise WorkerGone
            # The blank says that it came from the REPL, which may not speak as its supervisor.
            self._frames += (
                frame for line, frame in self._reader.take(data) if line[:1] != b" " or frame["t"] not in OF_SUPERVISOR
            )
            if self._reader.refused:
                self.fault, self._reader.refused = f"it sent {self._reader.refused}", ""
                self.control("kill")
        return self._frames.popleft() if self._frames else None

    def close(self, patience: float = 1.0) -> None:
        if self._closed:
            return
        if self._writing.acquire(timeout=patience):
            self._closed = True
            with contextlib.suppress(OSError):
                os.write(self._in, b"!quit\n")
            self._writing.release()
        self._closed = True
        self._end(patience)
