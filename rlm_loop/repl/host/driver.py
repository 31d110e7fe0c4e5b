"""Jobs given to a REPL and how they end: done, stopped at a limit, killed, or dead."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.calls import CellCalls
from rlm_loop.repl.host.child import Child, ChildEnded
from rlm_loop.repl.host.shielded import shielded
from rlm_loop.repl.settings import REPEAT
from rlm_loop.repl.text import NOTHING, Piece

_SLICE = 0.5  # seconds: never sleep longer without a look at the clock, which is an argument
_BUSY_SLICE = 0.05
_START = 30.0  # seconds for a process to say hello
_AFTER_KILL = 0.2  # seconds for the kernel to end what was killed, before force is used
_QUIT = 0.2  # seconds for what was given up to end, before force is used
_UNASKED = 1000  # messages that answer nothing: an honest REPL sends none
_BETWEEN = 0.5  # seconds to read what came between two cells

Stopped = Literal["", "timeout", "budget", "interrupted"]


class Ended(NamedTuple):
    """How a job ended: `how` it came back, whether the host had `stopped` it, and what it printed and reported.

    `cause` says how the REPL ended, where it did; `seconds` is the job's own time.
    """

    how: Literal["done", "died", "killed"]
    stopped: Stopped = ""
    report: Mapping[str, Any] = MappingProxyType({})
    out: Piece = NOTHING
    seconds: float = 0.0
    cause: str = ""


class Driver:
    """Keeps a REPL, and replaces it when it is lost.

    `fresh` says that the REPL knows nothing yet.  `session` is the identity of the session, which the tools that it
    waits for must not use.
    """

    def __init__(self, start: Callable[[], Child], clock: Callable[[], float], grace: float, session: int) -> None:
        self._start, self._clock, self._grace, self._session = start, clock, grace, session
        self._backlog: deque[dict[str, Any]] = deque()
        self.child: Child | None = None
        self.fresh = True

    @property
    def ready(self) -> bool:
        """True for a REPL that has said hello and has its set-up."""
        return self.child is not None and self.child.greeted and not self.fresh

    def begin(self) -> Child:
        """Return the REPL, started when there is none.  It can be given jobs before it is ready for them."""
        if self.child is None:
            with shielded():
                self.child, self.fresh = self._start(), True
        return self.child

    def ensure(self) -> Child:
        """Return the REPL once it has said hello."""
        child = self.begin()
        if not child.greeted:
            try:
                end = self._clock() + _START
                while not child.greeted:
                    self._greet(child.receive(_SLICE))
                    if self._clock() > end:
                        raise ReplError(f"the REPL did not start within {_START:g} s")
            except ChildEnded:
                cause = child.complaint() or child.death()
                self.drop()
                raise ReplError(f"the REPL ended while starting: {cause}") from None
            except BaseException:
                self.drop()
                raise
        return child

    def died_meanwhile(self, sent_ahead: int) -> str:
        """Read what arrived between jobs; return how the REPL ended, or an empty text."""
        child = self.child
        if child is None:
            return ""
        end = 0.0
        try:
            while child.has_said():
                end = end or self._clock() + _BETWEEN
                if self._clock() > end:
                    child.refuse(_FLOOD)
                elif (frame := child.receive(0)) is not None and not self._greet(frame):
                    if len(self._backlog) < sent_ahead:  # jobs sent ahead may be done by now
                        self._backlog.append(frame)
                    else:
                        self._unasked()
        except ChildEnded:
            return self._lost(child)
        return ""

    def send(self, frame: Mapping[str, Any], number: int = 0) -> int:
        """Hand over a job and return its number (a new one unless given); it runs after those before it."""
        number = number or job_number()
        self.begin().send({**frame, "id": number})
        return number

    def calls(self, tools: Mapping[str, Callable[..., Any]]) -> CellCalls:
        """A record for the calls of host tools by the next job."""
        return CellCalls(self.begin(), tools, self._clock)

    def serve(
        self,
        frame: Mapping[str, Any],
        tools: Mapping[str, Callable[..., Any]],
        limit: float,
        grace: float | None = None,
    ) -> tuple[Ended, BaseException | None, CellCalls]:
        """Run a job; return how it ended, what a host tool raised to end it, and its calls."""
        job, calls = job_number(), self.calls(tools)
        try:
            self.send(frame, job)
            ended = self.wait(job, limit, calls, grace=grace)
            return ended, calls.ended, calls
        except KeyboardInterrupt as interrupt:
            return self._stop(job, calls), interrupt, calls
        except BaseException:
            self.drop()
            raise

    def _stop(self, job: int, calls: CellCalls) -> Ended:
        """Ctrl-C: stop the cell and keep the session; a second Ctrl-C kills the REPL."""
        try:
            calls.close()
            ping = self.send({"t": "ping"})  # answered after the job, also if the job never got there
            return self.wait(job, 0.0, calls, stopped="interrupted", ping=ping)
        except BaseException:
            self.drop()
            raise

    def wait(
        self,
        job: int,
        timeout: float,
        calls: CellCalls,
        *,
        stopped: Stopped = "",
        ping: int = -1,
        grace: float | None = None,
    ) -> Ended:
        """Serve a job until it ends; stop it at `timeout` seconds of its own time, or when a tool ends the cell.

        Stopping means an interrupt, repeated during the grace time, then SIGKILL.  A job that is `stopped`
        already is given the grace time only; `ping` is a later job of which the end says the same.  `grace` shortens
        the grace time.
        """
        child = self.child if self.child is not None and self.child.greeted else self.ensure()
        clock, began = self._clock, self._clock()
        grace = self._grace if grace is None else min(grace, self._grace)
        since, next_interrupt, killed = began, 0.0, False

        def ended(how: Literal["done", "died", "killed"], report: Mapping[str, Any], cause: str = "") -> Ended:
            waited = 0.0
            if calls.made:
                calls.close()
                waited = calls.waited()
            own = max(0.0, clock() - began - waited)
            return Ended(how, stopped, report, child.printed_by(job), own, cause)

        try:
            while True:
                now = clock()
                own = now - began - (calls.waited() if calls.made else 0.0)
                if not stopped and (calls.ended is not None or own >= timeout):
                    stopped = "budget" if calls.ended is not None else "timeout"
                    since, next_interrupt = now, 0.05 if stopped == "budget" else 0.0
                    if stopped == "timeout":
                        calls.close()
                if stopped:
                    spent = now - since
                    if killed and spent > grace + _AFTER_KILL:
                        child.force()
                        raise ChildEnded
                    if spent >= grace and not killed:
                        child.kill()
                        killed = True
                    elif spent >= next_interrupt and not killed:
                        child.interrupt()
                        next_interrupt = spent + REPEAT
                    limit = grace + _AFTER_KILL if killed else min(next_interrupt, grace)
                    pause = limit - spent
                else:
                    # A cell that waits for a tool spends nothing, but may go on at any moment.
                    pause = max(timeout - own, _BUSY_SLICE if calls.made and calls.busy else 0.0)
                if self._backlog:
                    frame = self._backlog.popleft()
                else:
                    frame = child.receive(min(max(pause, 0.001), _SLICE))
                if frame is None:
                    continue
                if frame["t"] == "call" and frame.get("cell") == job:
                    calls.start(frame, self._session)
                elif frame["t"] == "done" and frame.get("id") in (job, ping):
                    if frame["id"] == ping:
                        return ended("done", {})
                    if stopped == "timeout" and not frame.get("interrupts"):
                        stopped = ""  # it was done before the interrupt reached it
                    return ended("done", frame)
                elif not self._greet(frame):
                    self._unasked()
        except ChildEnded:
            cause = self._lost(child, job, killed)
            return ended("killed" if killed else "died", {}, cause)

    def _unasked(self) -> None:
        if self.child is not None:
            self.child.unasked += 1
            if self.child.unasked > _UNASKED:
                self.child.refuse(_FLOOD)

    def drop(self) -> None:
        """Give the REPL up, and all that runs in it; the next job starts a new one."""
        with shielded():
            child, self.child, self.fresh = self.child, None, True
            self._backlog.clear()
            if child is not None:
                child.close(patience=_QUIT)

    def _lost(self, child: Child, job: int = 0, killed: bool = False) -> str:
        cause = "" if killed else child.death()
        child.keep_printed(job)
        self.drop()
        return cause

    def close(self) -> None:
        """End the REPL."""
        child, self.child = self.child, None
        if child is not None:
            child.close()

    def _greet(self, frame: Mapping[str, Any] | None) -> bool:
        """Note that the REPL said hello; return whether this frame does."""
        if frame is None or frame["t"] != "hello" or self.child is None or self.child.greeted:
            return False
        self.child.greeted = True
        return True


_FLOOD = "it sent messages that nobody had asked for"


def job_number() -> int:
    """A number that no cell can guess: a cell may write frames, and none for cells to come."""
    return secrets.randbits(48) + 1
