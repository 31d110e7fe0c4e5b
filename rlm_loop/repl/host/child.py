"""A REPL process, seen from the host: its socket, its life line, the jobs that it does, and its end."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.calls import CellCalls
from rlm_loop.repl.host.frames import FrameReader, Outgoing, Output
from rlm_loop.repl.host.launch import Launch, tidied
from rlm_loop.repl.host.shielded import shielded
from rlm_loop.repl.settings import Settings

_READ = 1 << 16
_PASSCRED = getattr(socket, "SO_PASSCRED", 0)  # Linux: the kernel says of each message which process sent it
_ONE_SENDER = socket.CMSG_SPACE(12) if _PASSCRED else 0  # a process, a user, a group; no room for descriptors
_CONNECT = 120.0  # seconds for a process that connects by itself, as in a container
_START = 30.0  # seconds for a process to say hello
_STATUS = 1.0  # seconds for the exit status, once the socket is closed
_REPEAT = 0.15  # seconds between interrupts of a cell that goes on
_SLICE = 0.5  # seconds: never sleep longer without a look at the clock, which is an argument
_BUSY_SLICE = 0.05
_UNASKED = 1000  # messages that answer nothing: an honest REPL sends none
_BETWEEN = 0.5  # seconds to read what came between two cells
_BROKEN = "it sent what nobody had asked for, or more than may be sent"

Stopped = Literal["", "timeout", "budget", "interrupted"]


class Ended(NamedTuple):
    """The end of a job: `how` it came back, whether the host had `stopped` it, and what it printed and reported.

    `cause` says how the REPL ended, where it did; `seconds` is the job's own time.
    """

    how: Literal["done", "died", "killed"]
    stopped: Stopped
    report: Mapping[str, Any]
    out: str
    seconds: float
    cause: str = ""


class ChildEnded(Exception):
    """The REPL ended, or closed its socket, which is as bad."""


class Child:
    """A started process.  Nothing that it says is trusted.

    Its private folder is `home`; `session` is the identity of the session, which the tools that it waits for must not
    use.  It ends when `close` is called, when a job of its does not end well, or when this process ends in any way.
    """

    def __init__(self, launch: Launch, cwd: Path, home: Path, settings: Settings, session: int) -> None:
        self._launch, self._settings, self._session = launch, settings, session
        self._log = home / "worker.log"
        self.kind = launch.kind
        self.closed = self._ended = False
        self._fault = ""  # why it was killed, where it broke the protocol
        self._unasked = 0
        self._pid = 0  # as the kernel says; 0 while it has not spoken
        self._frames: deque[dict[str, Any]] = deque()
        self._reader = FrameReader()
        line, ours = os.pipe()
        self._line = [ours]  # a list: taking it out is one step, and whichever thread does it closes it
        self._sock, there = socket.socketpair()
        self._listener = _listener(launch.connects_to) if launch.connects_to is not None else None
        try:
            with self._log.open("wb") as err:
                # A session of its own: Ctrl-C in the terminal reaches the host, which decides what it means.
                self._popen = subprocess.Popen(
                    tidied(launch.argv, home),
                    stdin=line,
                    stdout=there.fileno() if self._listener is None else subprocess.DEVNULL,
                    stderr=err,
                    env=dict(launch.env),
                    cwd=cwd,
                    start_new_session=True,
                )
        except OSError as e:
            os.close(ours)
            raise ReplError(f"cannot start the REPL with {launch.argv[0]!r}: {e.strerror or e}") from e
        finally:
            os.close(line)
            there.close()
        _children.add(self)
        printed, self._writer = os.pipe()
        self._output = Output(printed, settings.output_cap)
        os.set_blocking(printed, False)
        if os.geteuid() == 0:
            os.fchmod(self._writer, 0o622)  # the cells' user is another, and they may open /dev/stdout
        self._poll = select.poll()
        self._poll.register(printed, select.POLLIN)

    def greet(self) -> None:
        """Send the pipe for its output, and wait until it has said hello; raises `ReplError` where it does not."""
        try:
            if self._listener is not None:
                self._sock = self._accepted(self._listener)
            if _PASSCRED:
                self._sock.setsockopt(socket.SOL_SOCKET, _PASSCRED, 1)
            self._sock_fd, self._out = self._sock.fileno(), Outgoing(self._sock)
            self._poll.register(self._sock_fd, select.POLLIN)
            with contextlib.suppress(OSError):  # it has ended
                socket.send_fds(self._sock, [b"\n"], [self._writer])
            end = self._settings.clock() + _START
            while (frame := self._receive(_SLICE)) is None or frame["t"] != "hello":
                if self._settings.clock() > end:
                    raise ReplError(f"the REPL did not start within {_START:g} s")
        except ChildEnded:
            written = self._log.read_text("utf-8", "replace").strip().splitlines()
            cause = written[-1] if written else self._death()
            self.drop()
            raise ReplError(f"the REPL ended while starting: {cause}") from None
        except BaseException:
            self.drop()
            raise

    def _accepted(self, listener: socket.socket) -> socket.socket:
        """Wait for the process to connect."""
        end = time.monotonic() + _CONNECT
        with listener:
            while time.monotonic() < end and self._popen.poll() is None:
                if select.select([listener], [], [], 0.05)[0]:
                    self._sock.close()
                    return listener.accept()[0]
        raise ChildEnded

    # -- jobs

    def do(
        self,
        frame: Mapping[str, Any],
        tools: Mapping[str, Callable[..., Any]],
        limit: float,
        grace: float | None = None,
    ) -> tuple[Ended, CellCalls]:
        """Run a job; return how it ended, and its calls of host tools: `ended` is what is to be raised.

        The job is stopped at `limit` seconds of its own time, or when a tool ends the cell: it is interrupted, again
        and again during the grace time, which `grace` shortens, then killed.  Ctrl-C stops the job and keeps the REPL;
        a second one kills the REPL.
        """
        calls = CellCalls(tools, self._settings.clock, self._out.send, self._session)
        grace = self._settings.grace if grace is None else min(grace, self._settings.grace)
        job = secrets.randbits(48) + 1  # a cell may write frames, and none for cells to come
        self._output.read()
        self._output.take()  # what threads and processes printed since the job before goes nowhere
        try:
            try:
                self._out.send({**frame, "id": job})
                ended = self._wait(job, limit, calls, grace)
            except KeyboardInterrupt as interrupt:
                calls.ended = interrupt
                calls.close()
                self._out.send({"t": "ping", "id": job + 1})  # answered after the job, also if the job never got there
                ended = self._wait(job, 0.0, calls, grace, "interrupted")
        except BaseException:
            self.drop()
            raise
        if ended.how != "done":
            self.drop()
        return ended, calls

    def _wait(self, job: int, timeout: float, calls: CellCalls, grace: float, stopped: Stopped = "") -> Ended:
        """Serve a job until it ends.  One that is `stopped` already is given the grace time only."""
        clock = self._settings.clock
        began = since = clock()
        next_interrupt = 0.0
        how: Literal["done", "died", "killed"] = "done"
        report, cause = dict[str, Any](), ""
        try:
            while True:
                now = clock()
                own = now - began - calls.waited()
                if not stopped and (calls.ended is not None or own >= timeout):
                    stopped = "budget" if calls.ended is not None else "timeout"
                    since, next_interrupt = now, 0.05 if stopped == "budget" else 0.0
                    if stopped == "timeout":
                        calls.close()
                if stopped:
                    spent = now - since
                    if spent >= grace:
                        self.kill()
                        how = "killed"
                        break
                    if spent >= next_interrupt:
                        self._signal(signal.SIGINT)  # the process sees it before it reads anything of a later cell
                        next_interrupt = spent + _REPEAT
                    pause = min(next_interrupt, grace) - spent
                else:
                    # A cell that waits for a tool spends nothing, but may go on, or be ended by it, at any moment.
                    pause = _BUSY_SLICE if calls.under_way else timeout - own
                frame = self._receive(min(max(pause, 0.001), _SLICE))
                if frame is None:
                    continue
                if frame["t"] == "call" and frame.get("cell") == job:
                    calls.start(frame)
                elif frame["t"] == "done" and frame.get("id") in (job, job + 1):
                    if frame["id"] == job:
                        report = frame
                        if stopped == "timeout" and not frame.get("interrupts"):
                            stopped = ""  # it was done before the interrupt reached it
                        elif not stopped and calls.ended is not None:
                            stopped = "budget"  # the tool ended the cell at once
                    break
                else:
                    self._count_unasked()
        except ChildEnded:
            how, cause = "died", self._death()
        self._output.read()
        calls.close()
        return Ended(how, stopped, report, self._output.take(), max(0.0, clock() - began - calls.waited()), cause)

    def died_meanwhile(self) -> str:
        """Read what arrived between jobs; return how the REPL ended, or an empty text."""
        end = self._settings.clock() + _BETWEEN
        try:
            while self._frames or self._ended or self._sock_fd in dict(self._poll.poll(0)):
                if self._settings.clock() > end:
                    self._refuse(_BROKEN)
                if self._receive(0) is not None:
                    self._count_unasked()
        except ChildEnded:
            cause = self._death()
            self.drop()
            return cause
        return ""

    def _count_unasked(self) -> None:
        self._unasked += 1
        if self._unasked > _UNASKED:
            self._refuse(_BROKEN)

    # -- to the process

    def _signal(self, number: int) -> None:
        if self._pid > 1 and not self._ended:
            with contextlib.suppress(OSError):
                os.kill(self._pid, number)

    def kill(self) -> None:
        """Have the kernel end the process and its group, also where it has cut its life line or left the group."""
        try:
            os.close(self._line.pop())
        except IndexError:
            return  # it was killed before
        self._signal(signal.SIGKILL)

    def _force(self) -> None:
        """End it where it is not gone long after `kill`, and whatever stands around it."""
        with contextlib.suppress(OSError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._launch.cleanup()

    # -- from the process

    def _receive(self, seconds: float) -> dict[str, Any] | None:
        """Return the next frame, or `None` when there is none in time.

        Raises `ChildEnded` once the process has ended and all that it said was returned.
        """
        if not self._frames:
            for fd, _ in () if self._ended else self._poll.poll(max(0.0, seconds) * 1000):
                if fd == self._sock_fd:
                    self._hear()
                else:
                    self._output.read()
            if not self._frames:
                if self._ended:
                    raise ChildEnded
                return None
        return self._frames.popleft()

    def _hear(self) -> None:
        try:
            data, about, _, _ = self._sock.recvmsg(_READ, _ONE_SENDER, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data, about = b"", []
        if not data:
            self._refuse("")
            return
        sender = int.from_bytes(about[0][2][:4], sys.byteorder) if about else self._pid
        if not self._pid:
            self._pid = sender  # it said hello, before any cell ran
        elif sender != self._pid:
            self._refuse(_BROKEN)  # a process that a cell left spoke in its place
            return
        self._frames += self._reader.take(data)
        if self._reader.refused:
            self._refuse(_BROKEN)

    def _refuse(self, fault: str) -> None:
        """Hear it no longer, and have it killed: no honest worker does what it did."""
        if self._ended:
            return
        if fault:
            self._frames.clear()
        self._poll.unregister(self._sock_fd)
        self.kill()
        self._fault, self._ended = fault, True

    # -- its end

    def _death(self) -> str:
        """Return how it ended, in a few words, once it has."""
        status = None if self._fault else self._waited(_STATUS)
        if status is None or status < 0:  # the shell around it did not live to tell
            return self._fault or "nothing is known of how"
        if status <= 128:
            return f"it ended itself with exit status {status}"
        names = {number.value: number.name for number in signal.Signals}
        return f"killed by {names.get(status - 128, 'a signal')}"

    def drop(self) -> None:
        """Give the REPL up, and all that runs in it."""
        with shielded():
            self.close(patience=0.2)

    def close(self, patience: float = 1.0) -> None:
        """End the process and what it started; by force if that takes more than `patience` seconds.

        May be called again, from any thread.
        """
        if self.closed:
            return
        self.closed = True
        self.kill()
        try:
            if self._waited(patience) is None:
                self._force()
                self._waited(10.0)
        finally:
            self._ended = True
            _children.discard(self)
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)  # a thread that waits for the REPL to read ends
            self._sock.close()
            os.close(self._writer)
            os.close(self._output.fd)

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


os.register_at_fork(after_in_child=lambda: [child.leave_to_parent() for child in _children])


def _listener(path: Path) -> socket.socket:
    """A socket at a path in the private folder, which only the cells' user may enter."""
    path.unlink(missing_ok=True)  # of the REPL before this one
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.chmod(0o666)
    listener.listen(1)
    return listener
