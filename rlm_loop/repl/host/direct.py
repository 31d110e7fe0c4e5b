"""A worker whose REPL is reached directly: the supervisor is asked for its life and death only.

There is a socket to each REPL, and one to the supervisor.  So a cell wakes one process and not two on each way, what
a REPL sends cannot be taken for its supervisor's word, and what is left of a REPL that died is gone with its socket.
The output of a cell comes through a pipe that is made here and sent with the cell.  When the REPL says that the cell
is done, its output is in the pipe; what a process left behind writes later, the supervisor reads and drops.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.frames import OF_SUPERVISOR, FrameReader, dumps
from rlm_loop.repl.host.outgoing import AT_ONCE, Outgoing
from rlm_loop.repl.host.process import Running, Worker, WorkerGone
from rlm_loop.repl.worker import CAPTURED, ONE_SENDER, Capture, enclosing, tell_sender

_READ = 1 << 16
_SOON = 2  # milliseconds: a cell that is over by then is woken for once, at its end, and not when it prints
_ANSWER = 5.0  # seconds for the supervisor to say that it has sent an interrupt: a cell may have stopped it
_NEWS = 1.0  # seconds for it to say that the REPL ended, where that has been seen already


class DirectWorker(Worker):
    """A worker with a socket to each REPL, and `line` to its supervisor."""

    def __init__(self, running: Running, line: socket.socket, cap: int, log: Path) -> None:
        super().__init__(running, log, line.fileno())
        self._line, self._cap = line, cap
        self._captures: dict[int, tuple[Capture, int]] = {}  # by job, with the REPL's generation
        self._unwatched: list[int] = []  # pipes of cells that began just now
        self._spare: tuple[int, int] | None = None  # the next cell's pipe
        self._over: list[int] = []  # pipes that are to be closed
        self._from_supervisor = FrameReader()
        self._closing = threading.Lock()
        self._gone = False
        self._interrupts = 0  # sent, and not yet answered
        self._generation = 0
        ours, theirs = socket.socketpair()
        tell_sender(ours)
        with theirs, contextlib.suppress(OSError):  # it ended already, which `receive` notices
            line.sendmsg([b"!repl\n"], enclosing(theirs.fileno()), AT_ONCE)
        self._meet(ours)

    # -- to the worker

    def send(self, frame: Mapping[str, Any]) -> None:
        if self._closed:
            raise WorkerGone
        kind = frame["t"]
        writer = -1
        if kind != "reply":
            if self._interrupts > 0:
                self._let_interrupts_land()
            if kind in CAPTURED:
                writer = self._new_pipe(frame)
        self._out.send(dumps(frame) + b"\n", writer)

    def control(self, word: str) -> None:
        with contextlib.suppress(OSError):
            self._line.send(b"!%s %d\n" % (word.encode(), self._generation), socket.MSG_DONTWAIT)
            if word == "int":
                self._interrupts += 1

    def _let_interrupts_land(self) -> None:
        """An interrupt of the job before must not strike the next one, which takes another way."""
        while self._interrupts > 0 and self._hear_supervisor(_ANSWER):
            pass
        self._interrupts = 0

    def _new_pipe(self, frame: Mapping[str, Any]) -> int:
        pipe, self._spare = self._spare, None
        try:
            reader, writer = pipe or _pipe()
        except OSError as e:
            raise ReplError(f"cannot make a pipe for the output of a cell: {e.strerror}") from e
        self._captures[frame["id"]] = Capture(reader, self._cap), frame["g"]
        self._unwatched.append(reader)
        return writer

    def _prepare(self) -> None:
        """While the REPL works: what the next cell needs, and what the one before has left."""
        if self._spare is None:
            with contextlib.suppress(OSError):
                self._spare = _pipe()
        while self._over:
            os.close(self._over.pop())

    # -- from the worker

    def receive(self, seconds: float) -> dict[str, Any] | None:
        if not self._frames:
            if self._gone:
                raise WorkerGone
            wait = max(0.0, seconds) * 1000
            if self._unwatched:
                wait = min(wait, _SOON)
                self._prepare()
            ready = self._poll.poll(wait)
            if not ready:
                if self._unwatched:
                    self._watch_output()
            elif self._link_fd != ready[0][0] or len(ready) > 1:
                self._hear(ready)
            else:
                self._hear_repl()
            if self._link_fd < 0 and not (seconds or self._frames or self._gone):
                self._hear_supervisor(_NEWS)
            if not self._frames and self._gone:
                raise WorkerGone
        return self._frames.popleft() if self._frames else None

    def _watch_output(self) -> None:
        for fd in self._unwatched:
            self._poll.register(fd, select.POLLIN)
        self._unwatched.clear()

    def _hear(self, events: list[tuple[int, int]]) -> None:
        ready = [fd for fd, _ in events]
        if self._link_fd in ready:
            self._hear_repl()
        if self._wake_r in ready:
            os.read(self._wake_r, 4096)
        for capture, _ in self._captures.values():
            if capture.fd in ready and capture.read():
                self._close(capture)
        if self._line.fileno() in ready:
            self._hear_supervisor()

    def _hear_repl(self) -> bool:
        """Take what the REPL says; whether there was anything."""
        if self._link_fd < 0:
            return False
        try:
            if not self._raw:  # read and kept in one call, so that Ctrl-C in between loses nothing
                self._raw.extend(map(self._link.recvmsg, (_READ,), (ONE_SENDER,), (socket.MSG_DONTWAIT,)))
            data, sender, _, _ = self._raw.pop()
        except BlockingIOError:
            return False
        except OSError:
            data, sender = b"", []
        if not data:  # it ended, or closed its side, which is as bad
            self._end_repl("")
            return False
        if sender != self._sender:  # the process, as the kernel says
            if self._sender is not None:
                self._end_repl("a process that a cell left spoke in its place")
                return True
            self._sender = sender  # it said hello, before any cell ran
        for _, frame in self._from_repl.take(data):
            kind = frame["t"]
            if kind in OF_SUPERVISOR:
                continue  # forged by a cell
            if kind == "done":  # so what it printed is in its pipe
                job = frame.get("id")
                if isinstance(job, int) and job in self._captures and self._captures[job][1] == frame.get("g"):
                    self._end_capture(job)
            self._frames.append(frame)
        if self._from_repl.refused:
            self._end_repl(f"it sent {self._from_repl.refused}")
        return True

    def _end_repl(self, fault: str) -> None:
        """Hear it no longer, and have it killed: no honest worker does what it did."""
        self.fault = fault
        self._poll.unregister(self._link_fd)
        self._link_fd = -1
        self.control("kill")

    def _hear_supervisor(self, seconds: float = 0.0) -> bool:
        """Take what the supervisor says, if it says something in time; whether it lives and did."""
        poll = select.poll()
        poll.register(self._line, select.POLLIN)
        if not poll.poll(seconds * 1000):
            return False
        try:
            data, fds, _, _ = socket.recv_fds(self._line, _READ, 1)
        except OSError:
            data, fds = b"", []
        if not data:
            self._outlive_repl()
            self._gone = True
        for _, frame in self._from_supervisor.take(data):
            if frame["t"] == "int":
                self._interrupts -= 1
            elif frame["t"] == "died" and fds:
                self._outlive_repl()
                self._out.close()
                self._frames.append(frame)
                self._gone = not self._meet_next(fds.pop())
            else:
                self._gone = True  # cells can be at it, too
        for fd in fds:
            os.close(fd)
        self._gone = self._gone or bool(self._from_supervisor.refused)
        return not self._gone

    def _meet_next(self, fd: int) -> bool:
        """Take the socket of the next REPL, if it is one."""
        try:
            link = socket.socket(fileno=fd)
        except OSError:
            os.close(fd)
            return False
        if link.family != socket.AF_UNIX:
            link.close()
            return False
        tell_sender(link)
        self._meet(link)
        return True

    def _meet(self, link: socket.socket) -> None:
        """Talk to another REPL from now on, by this socket."""
        self._link, self._link_fd, self._out = link, link.fileno(), Outgoing(link)
        self._from_repl = FrameReader()
        self._raw: list[tuple[bytes, list[Any], int, Any]] = []
        self._sender: list[Any] | None = None
        self._poll.register(link, select.POLLIN)
        self._generation += 1

    def _outlive_repl(self) -> None:
        """Take what the REPL still said and printed, before the report of its end."""
        for _ in range(1000):  # where the supervisor was killed the REPL may yet live for a moment
            if not self._hear_repl():
                break
        if self._link_fd >= 0:
            self._poll.unregister(self._link_fd)
            self._link_fd = -1
        for job in list(self._captures):
            self._end_capture(job)

    # -- what cells print

    def _end_capture(self, job: int) -> None:
        capture, _ = self._captures.pop(job)
        if capture.fd >= 0:
            if not capture.read():  # a process that the cell left behind holds it, and shall live on
                with contextlib.suppress(OSError):
                    self._line.sendmsg([b"!drain\n"], enclosing(capture.fd), AT_ONCE)
            self._close(capture)
        if capture.head:
            self._frames.append({"t": "out", "id": job, "parts": capture.parts()})

    def _close(self, capture: Capture) -> None:
        if capture.fd in self._unwatched:
            self._unwatched.remove(capture.fd)
        with contextlib.suppress(KeyError):  # not watched yet
            self._poll.unregister(capture.fd)
        self._over.append(capture.fd)
        capture.fd = -1

    # -- its end

    def last_words(self) -> Iterable[dict[str, Any]]:
        self._outlive_repl()
        self._gone = True
        return self._frames

    def close(self, patience: float = 1.0) -> None:
        with self._closing:
            if self._closed:
                return
            self._closed = True
        self.control("quit")
        try:
            self._end(patience)
        finally:
            self._out.close()
            for job in list(self._captures):
                capture, _ = self._captures.pop(job)
                if capture.fd >= 0:
                    os.close(capture.fd)
            for fd in (*self._over, *(self._spare or ())):
                os.close(fd)


def _pipe() -> tuple[int, int]:
    """A pipe of which the reader never waits, and any user may open the other end."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    if os.geteuid() == 0:
        os.fchmod(writer, 0o622)  # the cells' user is another, and they may open /dev/stdout
    return reader, writer
