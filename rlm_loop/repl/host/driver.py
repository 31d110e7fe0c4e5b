"""Jobs given to a worker and how they end: done, stopped at a limit, killed, or dead."""

from __future__ import annotations

import contextlib
import secrets
import signal
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.calls import CellCalls
from rlm_loop.repl.host.direct import DirectWorker
from rlm_loop.repl.host.process import Starter, Worker, WorkerGone, WorkerProcess
from rlm_loop.repl.host.shielded import shielded
from rlm_loop.repl.settings import REPEAT
from rlm_loop.repl.text import NOTHING, Piece, printed
from rlm_loop.repl.worker import CANNOT_GO_ON

_SLICE = 0.5  # seconds: never sleep longer without a look at the clock, which is an argument
_BUSY_SLICE = 0.05
_AFTER_KILL = 0.2  # seconds for the supervisor to report a kill, before it is told to quit
_QUIT = 0.2  # seconds for it to do so, before it is killed too
_AHEAD = 10_000  # messages between two cells; there is one for each job sent ahead, and the rest is a flood

Stopped = Literal["", "timeout", "budget", "interrupted"]


EndedBy = Literal["cell", "worker", "supervisor"]
"""What ended a REPL: the cell (or the system, for what it did), the worker's code that could not go on, or the loss
of its supervisor."""


class Death(NamedTuple):
    """That a REPL ended: what ended it, and why in a few words."""

    by: EndedBy
    cause: str


class Ended(NamedTuple):
    """How a job ended: `how` it came back, whether the host had `stopped` it, and what it printed and reported.

    `cause` and `by` say why the REPL ended, where it did; `seconds` is the job's own time.
    """

    how: Literal["done", "died", "killed"]
    stopped: Stopped = ""
    report: Mapping[str, Any] = MappingProxyType({})
    out: Piece = NOTHING
    seconds: float = 0.0
    cause: str = ""
    by: EndedBy = "cell"


class Driver:
    """One worker, replaced when it is lost.

    `ready` says that the worker has been heard of, `fresh` that the REPL in it knows nothing yet.  `session` is the
    identity of the session, which the tools that it waits for must not use.
    """

    def __init__(self, start: Callable[[], Worker], clock: Callable[[], float], grace: float, session: int) -> None:
        self._start, self._clock, self._grace, self._session = start, clock, grace, session
        self._backlog: deque[dict[str, Any]] = deque()
        self.worker: Worker | None = None
        self.generation = 0
        self.fresh = True
        self.ready = False
        self._printed = NOTHING

    def begin(self) -> Worker:
        """The worker, started when there is none.  It can be given jobs, also before it is ready for them."""
        if self.worker is None:
            with shielded():
                worker = self._start()
                self.worker, self.generation, self.fresh, self.ready = worker, 1, True, False
        return self.worker

    def ensure(self) -> Worker:
        """The running worker, started when there is none, once it is ready."""
        worker = self.begin()
        if not self.ready:
            try:
                end = self._clock() + 30
                while worker.repl_pid is None:
                    if death := self._take(worker.receive(_SLICE)):
                        raise ReplError(f"the REPL ended while starting: {worker.complaint() or death.cause}")
                    if self._clock() > end:
                        raise ReplError("the REPL did not start within 30 s")
            except WorkerGone:
                complaint = worker.complaint()
                self.drop()
                raise ReplError(f"the REPL ended while starting: {complaint or 'no message'}") from None
            except BaseException:
                self.drop()
                raise
            self.ready = True
        return worker

    def died_meanwhile(self) -> Death | None:
        """Read what arrived between jobs; how the REPL ended, if it did."""
        worker = self.worker
        if worker is None:
            return None
        death = None
        try:
            while (frame := worker.receive(0)) is not None:
                if len(self._backlog) >= _AHEAD:
                    self.drop()
                    return Death("cell", f"it sent more than {_AHEAD:,} messages between two cells")
                died = self._take(frame)
                if died:
                    death = died
                    self._backlog.clear()
                else:
                    self._backlog.append(frame)  # jobs sent ahead may be done by now
        except WorkerGone:
            self.drop()
            return _UNSUPERVISED
        return death

    def send(self, frame: Mapping[str, Any], number: int = 0) -> int:
        """Hand over a job and return its number (a new one unless given); it runs after those before it."""
        number = number or job_number()
        with contextlib.suppress(WorkerGone):  # `wait` notices
            worker = self.worker or self.begin()
            worker.send({**frame, "g": self.generation, "id": number})
        return number

    def calls(self, tools: Mapping[str, Callable[..., Any]]) -> CellCalls:
        """A record for the calls of host tools by the next job."""
        return CellCalls(self.worker or self.begin(), self.generation, tools, self._clock)

    def serve(
        self,
        frame: Mapping[str, Any],
        tools: Mapping[str, Callable[..., Any]],
        limit: float,
        grace: float | None = None,
    ) -> tuple[Ended, BaseException | None, CellCalls]:
        """Run a job; how it ended, what a host tool raised to end it, and its calls."""
        job, calls = job_number(), CellCalls(self.worker or self.begin(), self.generation, tools, self._clock)
        try:
            self.send(frame, job)
            ended = self.wait(job, limit, calls, grace=grace)
            return ended, calls.ended, calls
        except KeyboardInterrupt as interrupt:
            return self._stop(job), interrupt, calls
        except BaseException:
            self.drop()
            raise

    def _stop(self, job: int) -> Ended:
        """Ctrl-C: stop the cell and keep the session; a second Ctrl-C kills the worker."""
        try:
            calls = self.calls({})
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
        worker = self.worker if self.ready and self.worker is not None else self.ensure()
        clock, began = self._clock, self._clock()
        grace = self._grace if grace is None else min(grace, self._grace)
        if ping < 0:  # else Ctrl-C may have struck after the output was received
            self._printed = NOTHING
        out = self._printed
        since, next_interrupt, killed = began, 0.0, False

        def ended(how: Literal["done", "died", "killed"], report: Mapping[str, Any], cause: Death = _ALIVE) -> Ended:
            waited = 0.0
            if calls.made:
                calls.close()
                waited = calls.waited()
            return Ended(how, stopped, report, out, max(0.0, clock() - began - waited), cause.cause, cause.by)

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
                        for frame in worker.last_words():
                            if frame["t"] == "out" and frame.get("id", job) == job:
                                out = _piece(frame)
                        raise WorkerGone
                    if spent >= grace and not killed:
                        worker.control("kill")
                        killed = True
                    elif spent >= next_interrupt and not killed:
                        worker.control("int")
                        next_interrupt = spent + REPEAT
                    limit = grace + _AFTER_KILL if killed else min(next_interrupt, grace)
                    pause = limit - spent
                else:
                    # A cell that waits for a tool spends nothing, but may go on at any moment.
                    pause = max(timeout - own, _BUSY_SLICE if calls.made and calls.busy else 0.0)
                if self._backlog:
                    frame = self._backlog.popleft()
                else:
                    frame = worker.receive(min(max(pause, 0.001), _SLICE))
                if frame is None:
                    continue
                kind = frame["t"]
                if kind == "call" and frame.get("g") == self.generation:
                    if frame.get("cell") == job:
                        calls.start(frame, self._session)
                elif kind == "out":
                    if frame.get("id", job) == job:
                        self._printed = out = _piece(frame)
                elif kind == "done" and frame.get("g") == self.generation and frame.get("id") in (job, ping):
                    if frame.get("id") == ping:
                        return ended("done", {})
                    if stopped == "timeout" and not frame.get("interrupts"):
                        stopped = ""  # it was done before the interrupt reached it
                    return ended("done", frame)
                elif kind == "done" and frame.get("quiet") is not True:
                    self._printed = out = NOTHING  # it was printed by that cell
                elif death := self._take(frame):
                    return ended("killed" if killed else "died", {}, death)
        except WorkerGone:
            self.drop()
            return ended("killed" if killed else "died", {}, _UNSUPERVISED)

    def drop(self) -> None:
        """Give the worker up, and all that runs in it; the next job starts a new one."""
        with shielded():
            worker, self.worker, self.fresh = self.worker, None, True
            self._backlog.clear()
            if worker is not None:
                worker.close(patience=_QUIT)

    def close(self) -> None:
        worker, self.worker = self.worker, None
        if worker is not None:
            worker.close()

    def _take(self, frame: Mapping[str, Any] | None) -> Death | None:
        """Note what the supervisor says about its REPL; how it ended, where the frame says that it did."""
        if frame is None or frame.get("g") != self.generation or self.worker is None:
            return None
        if frame["t"] == "hello":
            pid = frame.get("pid")
            self.worker.repl_pid = pid if isinstance(pid, int) and pid > 1 else None
        elif frame["t"] == "died":
            self.generation += 1
            self.fresh = True
            fault, self.worker.fault = self.worker.fault, ""
            return Death("cell", fault) if fault else _death(frame)
        return None


_ALIVE, _UNSUPERVISED = Death("cell", ""), Death("supervisor", "its supervisor was killed")


def job_number() -> int:
    """A number that no cell can guess: a cell may write frames, and none for cells to come."""
    return secrets.randbits(48) + 1


def worker_starter(start: Starter, options: Mapping[str, Any], cwd: Path, log: Path) -> Callable[[], Worker]:
    def begin() -> Worker:
        running = start(options, cwd, log)
        if running.line is None:
            return WorkerProcess(running, log)
        return DirectWorker(running, running.line, options["cap"], log)

    return begin


def _piece(frame: Mapping[str, Any]) -> Piece:
    if "parts" in frame:
        return printed(*frame["parts"])
    head, dropped, tail = frame.get("head"), frame.get("dropped"), frame.get("tail")
    if not (isinstance(head, str) and isinstance(tail, str) and isinstance(dropped, int) and dropped >= 0):
        return Piece()
    return printed(head.encode("latin-1", "replace"), dropped, tail.encode("latin-1", "replace"))


def _death(frame: Mapping[str, Any]) -> Death:
    """How the REPL ended, out of what its supervisor says."""
    if isinstance(fault := frame.get("fault"), str) and fault:
        return Death("cell", fault[:200])
    number, code = frame.get("signal"), frame.get("code")
    if not isinstance(number, int):
        return Death("worker" if code == CANNOT_GO_ON else "cell", f"it ended itself with exit status {code}")
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return Death("cell", f"killed by {name}" + (", probably because memory ran out" if name == "SIGKILL" else ""))
