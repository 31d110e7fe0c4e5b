"""Jobs given to a REPL and how they end: done, stopped at a limit, killed, or dead."""

from __future__ import annotations

import secrets
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
_FLOOD = "it sent messages that nobody had asked for"

Stopped = Literal["", "timeout", "budget", "interrupted"]
_NO_REPORT: Mapping[str, Any] = MappingProxyType({})


class Ended(NamedTuple):
    """How a job ended: `how` it came back, whether the host had `stopped` it, and what it printed and reported.

    `cause` says how the REPL ended, where it did; `seconds` is the job's own time.
    """

    how: Literal["done", "died", "killed"]
    stopped: Stopped = ""
    report: Mapping[str, Any] = _NO_REPORT
    out: Piece = NOTHING
    seconds: float = 0.0
    cause: str = ""


class Driver:
    """Keeps a REPL, and replaces it when it is lost.

    `session` is the identity of the session, which the tools that it waits for must not use.
    """

    def __init__(self, start: Callable[[], Child], clock: Callable[[], float], grace: float, session: int) -> None:
        self._start, self._clock, self._grace, self._session = start, clock, grace, session
        self.child: Child | None = None
        self.kind = ""
        """The isolation of the latest REPL."""

    def begin(self) -> Child:
        """Start a REPL and return it once it has said hello."""
        with shielded():
            child = self.child = self._start()
            self.kind = child.kind
        try:
            end = self._clock() + _START
            while (frame := child.receive(_SLICE)) is None or frame["t"] != "hello":
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

    def died_meanwhile(self) -> str:
        """Read what arrived between jobs; return how the REPL ended, or an empty text."""
        child = self.child
        if child is None:
            return ""
        end = self._clock() + _BETWEEN
        try:
            while child.has_said():
                if self._clock() > end:
                    child.refuse(_FLOOD)
                elif child.receive(0) is not None:
                    self._unasked(child)
        except ChildEnded:
            cause = child.death()
            self.drop()
            return cause
        return ""

    def serve(
        self,
        frame: Mapping[str, Any],
        tools: Mapping[str, Callable[..., Any]],
        limit: float,
        grace: float | None = None,
    ) -> tuple[Ended, CellCalls]:
        """Run a job; return how it ended, and its calls of host tools: `ended` is what is to be raised.

        The job is stopped at `limit` seconds of its own time, or when a tool ends the cell: it is interrupted, again
        and again during the grace time, which `grace` shortens, then killed.
        """
        child = self.child or self.begin()
        calls = CellCalls(tools, self._clock)
        job = secrets.randbits(48) + 1  # a cell may write frames, and none for cells to come
        try:
            child.send({**frame, "id": job})
            return self._wait(child, job, limit, calls, grace), calls
        except KeyboardInterrupt as interrupt:
            calls.ended = interrupt
            return self._stop(child, job, calls), calls
        except BaseException:
            self.drop()
            raise

    def _stop(self, child: Child, job: int, calls: CellCalls) -> Ended:
        """Ctrl-C: stop the cell and keep the session; a second Ctrl-C kills the REPL."""
        try:
            calls.close()
            ping = secrets.randbits(48) + 1  # answered after the job, also if the job never got there
            child.send({"t": "ping", "id": ping})
            return self._wait(child, job, 0.0, calls, None, "interrupted", ping)
        except BaseException:
            self.drop()
            raise

    def _wait(
        self,
        child: Child,
        job: int,
        timeout: float,
        calls: CellCalls,
        grace: float | None,
        stopped: Stopped = "",
        ping: int = -1,
    ) -> Ended:
        """Serve a job until it ends.  One that is `stopped` already is given the grace time only; `ping` is a later
        job of which the end says the same."""
        clock, began = self._clock, self._clock()
        grace = self._grace if grace is None else min(grace, self._grace)
        since, next_interrupt, killed = began, 0.0, False
        how: Literal["done", "died", "killed"] = "done"
        report, cause = _NO_REPORT, ""
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
                    pause = (grace + _AFTER_KILL if killed else min(next_interrupt, grace)) - spent
                else:
                    # A cell that waits for a tool spends nothing, but may go on at any moment.
                    pause = max(timeout - own, _BUSY_SLICE if calls.made and calls.under_way else 0.0)
                frame = child.receive(min(max(pause, 0.001), _SLICE))
                if frame is None:
                    continue
                if frame["t"] == "call" and frame.get("cell") == job:
                    calls.start(frame, child, self._session)
                elif frame["t"] == "done" and frame.get("id") in (job, ping):
                    if frame["id"] == job:
                        report = frame
                        if stopped == "timeout" and not frame.get("interrupts"):
                            stopped = ""  # it was done before the interrupt reached it
                    out = child.printed()
                    break
                else:
                    self._unasked(child)
        except ChildEnded:
            how, cause = ("killed", "") if killed else ("died", child.death())
            out = child.printed()
            self.drop()
        waited = 0.0
        if calls.made:
            calls.close()
            waited = calls.waited()
        return Ended(how, stopped, report, out, max(0.0, clock() - began - waited), cause)

    def _unasked(self, child: Child) -> None:
        child.unasked += 1
        if child.unasked > _UNASKED:
            child.refuse(_FLOOD)

    def drop(self) -> None:
        """Give the REPL up, and all that runs in it; the next job starts a new one."""
        with shielded():
            child, self.child = self.child, None
            if child is not None:
                child.close(patience=_QUIT)

    def close(self) -> None:
        """End the REPL."""
        child, self.child = self.child, None
        if child is not None:
            child.close()
