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
from pathlib import Path
from typing import Any, cast

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.launch import Launcher

_ONE_WRITE = 32_768  # fits a pipe, so one system call writes all of it
_LONGEST = 1 << 30  # characters of a frame; a worker that sends more is out of its mind


class WorkerGone(Exception):
    """The supervisor ended (not only the REPL in it)."""


class WorkerProcess:
    """A running worker.  Frames that it sends are checked for form only: what they say is not to be trusted."""

    def __init__(self, launcher: Launcher, python: str, options: dict[str, Any], cwd: Path, log: Path) -> None:
        launch = launcher(python, json.dumps(options))
        self._log = log
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
        self._in, self._out = self._popen.stdin.fileno(), self._popen.stdout.fileno()
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
        self._write(json.dumps(frame, separators=(",", ":")).encode() + b"\n")

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
                frame: Any = json.loads(line)
            except (ValueError, RecursionError):
                continue  # junk that a cell wrote to our descriptor
            if isinstance(frame, dict) and "t" in frame:
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
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        try:
            self._popen.wait(patience)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if self._popen.returncode != 0:  # 0: the supervisor has cleared up; else it was stuck, or was killed
                self._kill_group(self._popen.pid)
                if self.repl_pid is not None:
                    self._kill_group(self.repl_pid)
            self._popen.wait()
            for stream in (self._popen.stdin, self._popen.stdout):
                with contextlib.suppress(OSError):
                    stream.close()
            os.close(self._wake_r)
            os.close(self._wake_w)

    @staticmethod
    def _kill_group(pid: int) -> None:
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
