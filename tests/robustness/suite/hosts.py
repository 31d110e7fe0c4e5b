"""Run a case on a subject: in this process, or in a host process of its own with a hard time limit.

A case may end or hang its host, or the process above it: a guard stands between the host and this process.  Hosts are
forked from a server that has imported everything; those that look for the secret in /proc get a new Python.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import multiprocessing.forkserver
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from suite.case import ORDINARY, CellCase, Played, ReplyCase, Seen, Verdict, left_fault, played_fault, step_fault
from suite.cases import CASES
from suite.kinds import KINDS, TEXT_ANSWERS, Kind, named, slack
from suite.world import World, buried

READY = "the first cell"  # the hard limit counts from this note on
_START = 60.0  # seconds until then
_CLOSING = 2.5  # seconds that closing a session of ours may take, whatever a cell left in it
_INTO_THE_CELL = 0.4  # seconds that a cell runs before its host is killed
_UNSTOPPED = 5.0  # seconds for an endless cell where no time limit could stop it: whatever it does later is red
_LOCK = threading.Lock()  # for processes, which multiprocessing expects to be used by one thread


def run_cells(
    case: CellCase,
    kind: Kind,
    subject: Any,
    secret: str = "",
    outside: dict[str, Any] | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Verdict:
    """Run the cells of a case on an open subject.  `note` is told each step before it is taken."""
    seen: list[Seen] = []
    bound = kind.bound if "stops" in case.needs else None
    fault = ""
    began = time.monotonic()
    try:
        subject.new_run()
        for name, make in case.given.items():
            subject.set(name, make())
        if "reserved" in case.needs:
            subject.set("context", {"a": 1}, reserved=True)
        if outside:
            subject.run(f"outside = {outside!r}")
        subject.run("kept_before = 40")
        began = time.monotonic()
        for number, step in enumerate(case.steps, 1):
            note(f"cell {number}")
            hasty = bound is not None and "stopped" in step.error
            seen.append(result := subject.run(step.code, hasty))
            fault = fault or step_fault(step, result, secret, TEXT_ANSWERS in kind.features, case.theme not in ORDINARY)
            if bound is not None and hasty and result.seconds > bound * slack() and not fault:
                fault = f"cell {number} returned after {result.seconds:.2f} s, more than {bound:g} s"
        note("a look at what is left")
        alive = subject.run("print(6 * 7)")
        while alive.error == "died" and case.keeps != "variables" and len(seen) < len(case.steps) + 2:
            seen.append(alive)  # the damage showed only now, and may once more where earlier cells were run again
            alive = subject.run("print(6 * 7)")
        kept = subject.run("print(kept_before + 1)") if "variables" in kind.features else Seen("41")
        fault = fault or left_fault(case, seen, alive, kept)
    except Exception as error:
        fault = fault or f"the session failed: {type(error).__name__}: {error}"
    except BaseException as error:  # a cell's own, let through by the subject
        fault = fault or f"{type(error).__name__} came out of the session and would end its host"
    return _in_time(case, fault, began)


def run_replies(case: ReplyCase, kind: Kind) -> Verdict:
    """Have a loop play the replies of a case."""
    began = time.monotonic()
    try:
        played: Played = kind.play(case)  # pyright: ignore[reportOptionalCall]
        fault = played_fault(case, played, TEXT_ANSWERS in kind.features)
    except BaseException as error:
        fault = f"the run was left by {type(error).__name__}: {error}"
    return _in_time(case, fault, began)


def _in_time(case: CellCase | ReplyCase, fault: str, began: float) -> Verdict:
    seconds = time.monotonic() - began
    if not fault and seconds > case.seconds * slack():
        fault = f"took {seconds:.1f} s, more than {case.seconds:g} s"
    return Verdict("red" if fault else "green", fault)


def preload(kind: str) -> None:
    """Start the server that hosts are forked from; `PYTHONPATH` has to lead to this package."""
    ours = ["rlm_loop.repl.session", "rlm_loop.agents"]
    multiprocessing.get_context("forkserver").set_forkserver_preload(["suite.hosts", f"adapters.{kind}", *ours])
    multiprocessing.forkserver.ensure_running()


def run_apart(kind: Kind, case: CellCase | ReplyCase) -> Verdict:
    """Run a case in a host process of its own."""
    if reason := kind.why_not(case):
        return Verdict("n/a", reason)
    cells = case if isinstance(case, CellCase) else None
    endless = cells and "stops" in case.needs and any(set(s.error.split()) <= {"stopped", "died"} for s in cells.steps)
    hard = (_UNSTOPPED if endless and kind.bound is None else max(10.0, case.seconds)) * slack()
    with World() as world:
        report = Report(world.folder / "report.jsonl")
        new = cells and (case.theme.startswith("isolation") or cells.host_killed)
        arguments = (kind.name, case.name, world.secret, world.outside, world.environment(), report)
        guard: Any = multiprocessing.get_context("spawn" if new else "forkserver").Process(  # pyright: ignore
            target=_guarded, args=arguments
        )
        with _LOCK:
            guard.start()
        try:
            if cells and cells.host_killed:
                return _after_the_kill(cells, guard, report, world, hard)
            _wait(guard, lambda: READY in report.all("note"), _START * slack())
            timed_out = _wait(guard, lambda: False, hard)
        finally:
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(OSError):
                    kill(guard.pid, signal.SIGKILL)
            _wait(guard, lambda: False, 10)
        verdict = report.verdict() or Verdict("red", _silent(report, guard.exitcode or 0, timed_out, hard))
        fault = world.fault(cells.after) if cells and verdict.colour == "green" else ""
        return Verdict("red", fault) if fault else verdict


def _after_the_kill(case: CellCase, guard: Any, report: Report, world: World, hard: float) -> Verdict:
    """Kill the host in the middle of the last cell; whatever it had started must be gone soon."""
    last = f"cell {len(case.steps)}"
    _wait(guard, lambda: last in report.all("note"), hard + _START)
    time.sleep(_INTO_THE_CELL)
    host = next(iter(report.all("pid")), None)
    if host is None or report.verdict() is not None:
        return Verdict("red", f"it never got as far as {last}")
    with contextlib.suppress(OSError):
        os.kill(host, signal.SIGKILL)
    _wait(guard, lambda: False, hard)
    left = world.children_left()
    return Verdict("red" if left else "green", left)


def _wait(guard: Any, until: Callable[[], bool], seconds: float) -> bool:
    """Wait for a condition or the guard's end; return whether the time ran out."""
    end = time.monotonic() + seconds
    while not until():
        with _LOCK:
            if not guard.is_alive():
                return False
        if time.monotonic() > end:
            return True
        time.sleep(0.02)
    return False


def _silent(report: Report, status: int, timed_out: bool, hard: float) -> str:
    """Return the reason why there is no verdict."""
    if failed := report.all("failed"):
        return failed[0]
    where = (report.all("note") or ["the start"])[-1]
    return f"hung in {where}: killed after {hard:g} s" if timed_out else f"died in {where} (exit status {status})"


def _guarded(kind: str, case: str, secret: str, outside: Any, environment: dict[str, str], report: Report) -> None:
    """Be the guard, and wait for the host below; the host runs the case."""
    os.setsid()
    os.chdir(report.path.parent)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    os.close(nothing)
    if host := os.fork():
        code = os.waitstatus_to_exitcode(os.waitpid(host, 0)[1])
        os._exit(code if code >= 0 else 128 - code)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # it may have been looked up before
    report.write(pid=os.getpid())
    try:
        _host(named(kind), next(c for c in CASES if c.name == case), secret, {**outside, **buried(secret)}, report)
    except Exception as error:
        report.write(failed=f"could not be run: {type(error).__name__}: {error}"[:300])
    finally:
        _exit(0)


def _host(kind: Kind, case: CellCase | ReplyCase, secret: str, outside: dict[str, Any], report: Report) -> None:
    if isinstance(case, ReplyCase):
        report.note(READY)
        verdict = run_replies(case, kind)
    else:
        subject = kind.open(**case.options)
        subject.run("1")
        report.note(READY)
        verdict = run_cells(case, kind, subject, secret, outside, report.note)
        report.note("closing")
        before = time.monotonic()
        subject.close()
        closing = time.monotonic() - before
        if verdict.colour == "green" and kind.name in KINDS and closing > _CLOSING * slack():
            verdict = Verdict("red", f"closing took {closing:.1f} s")
    report.write(verdict=[verdict.colour, verdict.reason])


class Report:
    """A file with lines of a host: its process, each step before it is taken, and the verdict.

    Opened anew for every line: a cell may close every descriptor of its host.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, text: str) -> None:
        self.write(note=text)

    def write(self, **line: Any) -> None:
        fd = _open(str(self.path), _FLAGS, 0o600)
        _put(fd, _dumps(line).encode("utf-8", "replace") + b"\n")
        _close(fd)

    def all(self, name: str) -> list[Any]:
        """Return what was written under a name."""
        found: list[dict[str, Any]] = []
        with contextlib.suppress(OSError):
            for line in self.path.read_text("utf-8", "replace").splitlines():
                with contextlib.suppress(ValueError):  # torn: the host died while it wrote
                    found.append(json.loads(line))
        return [line[name] for line in found if name in line]

    def verdict(self) -> Verdict | None:
        return next((Verdict(*verdict) for verdict in self.all("verdict")), None)


# Kept from before any cell ran: cells replace what modules and builtins hold.
_open, _put, _close, _dumps, _exit = os.open, os.write, os.close, json.dumps, os._exit
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND
