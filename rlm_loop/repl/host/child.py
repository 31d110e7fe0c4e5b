"""A REPL process, seen from the host: its socket, its life line, what its cells print, and its end."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.incoming import FrameReader
from rlm_loop.repl.host.launch import Launch, tidied
from rlm_loop.repl.host.outgoing import Outgoing
from rlm_loop.repl.host.output import Output
from rlm_loop.repl.text import NOTHING, Piece
from rlm_loop.repl.worker import CAPTURED, ONE_SENDER, tell_sender

_READ = 1 << 16
_SOON = 2  # milliseconds: a cell that is over by then is woken for once, at its end, and not when it prints
_CONNECT = 120.0  # seconds for a process that connects by itself, such as a kernel, to do so
_STATUS = 1.0  # seconds for the exit status, once the socket is closed


class ChildEnded(Exception):
    """The REPL ended, or closed its socket, which is as bad."""


class Child:
    """A started process.  Nothing that it says is trusted.

    Its private folder is `home`.  It ends when `close` is called, or when this process ends in any way.
    """

    def __init__(self, launch: Launch, cwd: Path, home: Path, cap: int) -> None:
        self._launch, self._cap, self._log = launch, cap, home / "worker.log"
        self.kind = launch.kind
        self.unasked = 0
        self.fault = ""  # why it was killed, where it broke the protocol
        self.pid = 0  # as the kernel says; 0 while it has not spoken
        self._ended = self._closed = False
        self._frames: deque[dict[str, Any]] = deque()
        self._raw: list[tuple[bytes, list[Any], int, Any]] = []
        self._reader = FrameReader()
        self._outputs: dict[int, Output] = {}  # by descriptor: of the cell that runs, and of processes that cells left
        self._output: Output | None = None  # of the cell that runs
        self._watched = True  # its pipe is not, at first
        self._spare: tuple[int, int] | None = None  # the next cell's pipe
        line, ours = os.pipe()
        self._line = [ours]  # a list: taking it out is one step, and whichever thread does it closes it
        here, there = socket.socketpair()
        try:
            listener = _listener(launch.connects_to) if launch.connects_to is not None else None
            with self._log.open("wb") as err:
                # A session of its own: Ctrl-C in the terminal reaches the host, which decides what it means.
                self._popen = subprocess.Popen(
                    tidied(launch.argv, home),
                    stdin=line,
                    stdout=there.fileno() if listener is None else subprocess.DEVNULL,
                    stderr=err,
                    env=dict(launch.env),
                    cwd=cwd,
                    start_new_session=True,
                )
        except OSError as e:
            os.close(ours)
            here.close()
            raise ReplError(f"cannot start the REPL with {launch.argv[0]!r}: {e.strerror or e}") from e
        finally:
            os.close(line)
            there.close()
        _children.add(self)
        self._sock = here
        self._wake_r, self._wake_w = os.pipe()
        os.set_blocking(self._wake_r, False)
        self._poll = select.poll()
        self._poll.register(self._wake_r, select.POLLIN)
        if listener is not None:
            here.close()
            self._sock = self._connected(listener)
        tell_sender(self._sock)
        self._sock_fd = self._sock.fileno()
        self._poll.register(self._sock_fd, select.POLLIN)
        self._out = Outgoing(self._sock)

    def _connected(self, listener: socket.socket) -> socket.socket:
        """Wait for the process to connect."""
        end = time.monotonic() + _CONNECT
        with listener:
            while time.monotonic() < end and self._popen.poll() is None:
                if select.select([listener], [], [], 0.05)[0]:
                    return listener.accept()[0]
        self._sock = socket.socket()
        self._out = Outgoing(self._sock)
        self._sock_fd = -1
        self._ended = True
        self.close()
        raise ReplError(f"the REPL ended while starting: {self.complaint() or 'it did not connect'}")

    # -- to the process

    def send(self, frame: Mapping[str, Any]) -> None:
        """Send a frame, with the pipe for its output where it may print.  Safe from any thread."""
        enclosed: list[int] = []
        if frame["t"] in CAPTURED:
            try:
                reader, writer = self._spare or _pipe()
            except OSError as e:
                raise ReplError(f"cannot make a pipe for the output of a cell: {e.strerror}") from e
            self._spare, self._watched, enclosed = None, False, [writer]
            self._outputs[reader] = self._output = Output(reader, self._cap)
        self._out.send(frame, enclosed)

    def interrupt(self) -> None:
        """Send Ctrl-C.  It cannot strike a later cell: the process sees it before it reads anything more."""
        if self.pid > 1 and not self._ended:
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGINT)

    def kill(self) -> None:
        """Have the kernel end the process and its group, also where it has cut its life line or left the group."""
        try:
            os.close(self._line.pop())
        except IndexError:
            return  # it was killed before
        if self.pid > 1 and not self._ended:
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)

    def force(self) -> None:
        """End it where it is not gone long after `kill`, and whatever stands around it."""
        self.kill()
        for target in {self._popen.pid, *_in_session(self._popen.pid), self.pid if not self._ended else 0} - {0}:
            with contextlib.suppress(OSError):
                os.kill(target, signal.SIGKILL)
        self._launch.cleanup()

    def wake(self) -> None:
        """Make a waiting `receive` return `None` now.  Safe from any thread."""
        with contextlib.suppress(OSError):
            os.write(self._wake_w, b"!")

    # -- from the process

    def receive(self, seconds: float) -> dict[str, Any] | None:
        """Return the next frame, or `None` when there is none in time or `wake` was called.

        Raises `ChildEnded` once the process has ended and all that it said was returned.
        """
        if not self._frames:
            if self._ended:
                raise ChildEnded
            wait = max(0.0, seconds) * 1000
            if not self._watched:
                wait = min(wait, _SOON)
                if self._spare is None:
                    with contextlib.suppress(OSError):
                        self._spare = _pipe()
            ready = self._poll.poll(wait)
            if not ready and not self._watched and self._output is not None:
                self._watched = True
                self._poll.register(self._output.fd, select.POLLIN)
            for fd, _ in ready:
                if fd == self._sock_fd:
                    self._hear()
                elif fd == self._wake_r:
                    os.read(self._wake_r, 4096)
                elif (output := self._outputs.get(fd)) is not None and output.read():
                    self._forget(output)
            if not self._frames and self._ended:
                raise ChildEnded
        return self._frames.popleft() if self._frames else None

    def has_said(self) -> bool:
        """Return whether there is anything to `receive`, or the process has ended."""
        return bool(self._frames) or self._ended or self._sock_fd in dict(self._poll.poll(0))

    def printed(self) -> Piece:
        """Return what the cell has printed until now, which is its end."""
        output = self._output
        if output is None:
            return NOTHING
        if output.fd >= 0:
            if output.read():
                self._forget(output)
            elif not self._watched:  # a process that the cell left behind holds the pipe, and shall live on
                self._poll.register(output.fd, select.POLLIN)
        piece = output.piece() if output.head else NOTHING
        output.live, self._watched, self._output = False, True, None
        return piece

    def _forget(self, output: Output) -> None:
        with contextlib.suppress(KeyError):
            self._poll.unregister(output.fd)
        if self._outputs.pop(output.fd, None) is not None:  # else `close` took it, in another thread
            os.close(output.fd)
        output.fd = -1

    def _hear(self) -> None:
        try:
            if not self._raw:  # read and kept in one call, so that Ctrl-C in between loses nothing
                self._raw.extend(map(self._sock.recvmsg, (_READ,), (ONE_SENDER,), (socket.MSG_DONTWAIT,)))
            data, about, _, _ = self._raw.pop()
        except BlockingIOError:
            return
        except OSError:
            data, about = b"", []
        if not data:
            self.refuse("")
            return
        sender = int.from_bytes(about[0][2][:4], sys.byteorder) if about else self.pid
        if not self.pid:
            self.pid = sender  # it said hello, before any cell ran
        elif sender != self.pid:
            self.refuse("a process that a cell left spoke in its place")
            return
        self._frames += self._reader.take(data)
        if self._reader.refused:
            self.refuse(f"it sent {self._reader.refused}")

    def refuse(self, fault: str) -> None:
        """Hear it no longer, and have it killed: no honest worker does what it did."""
        if self._ended:
            return
        if fault:
            self._frames.clear()
        self._poll.unregister(self._sock_fd)
        self.kill()
        self.fault, self._ended = fault, True

    # -- its end

    def complaint(self) -> str:
        """Return the last line that it wrote before it ended, for a message about a failed start."""
        with contextlib.suppress(OSError):
            lines = self._log.read_text("utf-8", "replace").strip().splitlines()
            return lines[-1] if lines else ""
        return ""

    def death(self) -> str:
        """Return how it ended, in a few words, once it has."""
        status = None if self.fault else self._waited(_STATUS)
        if status is None or status < 0:  # the shell around it did not live to tell
            return self.fault or "nothing is known of how"
        if status <= 128:
            return f"it ended itself with exit status {status}"
        try:
            return f"killed by {signal.Signals(status - 128).name}"
        except ValueError:
            return f"killed by signal {status - 128}"

    def close(self, patience: float = 1.0) -> None:
        """End the process and what it started; by force if that takes more than `patience` seconds.

        May be called again, from any thread.
        """
        if self._closed:
            return
        self._closed = True
        self.kill()
        end = time.monotonic() + patience
        try:
            if not self._ended:  # waiting for the hang-up is quicker than asking for the exit status again and again
                poll = select.poll()
                poll.register(self._sock_fd, 0)
                poll.poll(patience * 1000)
            if self._waited(max(0.0, end - time.monotonic())) is None:
                self.force()
                self._waited(10.0)
        finally:
            self._ended = True
            _children.discard(self)
            self._out.close()
            while self._outputs:
                os.close(self._outputs.popitem()[0])
            for fd in (*(self._spare or ()), self._wake_r, self._wake_w):
                os.close(fd)

    def _waited(self, seconds: float) -> int | None:
        try:
            return self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def leave_to_parent(self) -> None:
        """In a forked copy of the host: close what keeps the process alive, which is not the copy's."""
        self._ended = True
        self.kill()
        self._sock.close()


_children: weakref.WeakSet[Child] = weakref.WeakSet()


def _after_fork() -> None:
    for child in list(_children):
        with contextlib.suppress(OSError):
            child.leave_to_parent()
    _children.clear()


os.register_at_fork(after_in_child=_after_fork)


def _listener(path: Path) -> socket.socket:
    """A socket at a path in the private folder, which only the cells' user may enter."""
    path.unlink(missing_ok=True)  # the one that an earlier process was reached by
    listener = socket.socket(socket.AF_UNIX)
    path.unlink(missing_ok=True)  # of the REPL before this one
    listener.bind(str(path))
    path.chmod(0o666)
    listener.listen(1)
    return listener


def _pipe() -> tuple[int, int]:
    """A pipe of which the reader never waits, and any user may open the other end."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    if os.geteuid() == 0:
        os.fchmod(writer, 0o622)  # the cells' user is another, and they may open /dev/stdout
    return reader, writer


def _in_session(session: int) -> list[int]:
    """The processes of a session, where the kernel lists them (Linux)."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                if os.getsid(int(pid)) == session:
                    found.append(int(pid))
    return found
