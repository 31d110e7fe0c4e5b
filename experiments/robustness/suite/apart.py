"""Put one case to one kind of session in a host process of its own, with a hard time limit, and look from outside.

A case may end or hang its host, or the process above it: a shell stands between the host and this process.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.robustness.suite.case import CaseResult, CellCase, ReplyCase
from experiments.robustness.suite.forks import Forks, Guard
from experiments.robustness.suite.subject import slack
from experiments.robustness.suite.world import World

READY = "the first cell"
"""What a host notes in its report once it has started: the hard limit counts from there."""

_GUARD = '"$@" & wait $!; exit $?'
_INTO_THE_CELL = 0.4  # seconds that a cell runs before its host is killed


def run_apart(
    command: Sequence[str],
    case: CellCase | ReplyCase,
    *,
    kind: str,
    hard: float | None = None,
    start: float = 60.0,
    forks: Forks | None = None,
) -> CaseResult:
    """The verdict on a case; `command` gets the case's name and the file for its report as further arguments.

    The host says in its report when it is `READY`, for which it has `start` seconds.  From then on it has `hard`
    seconds (default: 10, or what the case is given if that is more); then it is killed, with all that it started.
    With `forks` the host is forked, unless the case looks at what is around it.  Linux only.
    """
    hard = (max(10.0, case.seconds) if hard is None else hard) * slack()
    with World() as world:
        report = world.folder / "report.jsonl"
        began = time.monotonic()
        guard = _started(command, case, world, report, forks)
        try:
            if isinstance(case, CellCase) and case.host_killed:
                return _after_the_kill(case, kind, guard, report, world, hard)
            timed_out = _wait(guard, report, hard, start * slack())
        finally:
            with contextlib.suppress(OSError):
                os.killpg(guard.pid, signal.SIGKILL)
            guard.wait()
        seconds = time.monotonic() - began
        verdict = _verdict(report) or CaseResult(
            case.name, kind, "red", _silent(report, guard, timed_out, hard), seconds
        )
        if verdict.colour != "n/a" and isinstance(case, CellCase):
            faults = [fault for name in case.after if (fault := world.fault(name))]
            if faults and verdict.colour == "green":
                verdict = replace(verdict, colour="red", reason=faults[0])
        return replace(verdict, kind=kind)


def _started(
    command: Sequence[str], case: CellCase | ReplyCase, world: World, report: Path, forks: Forks | None
) -> subprocess.Popen[bytes] | Guard:
    looks_around = isinstance(case, CellCase) and (case.theme.startswith("isolation") or case.host_killed)
    if forks is not None and not looks_around:
        return forks.start(case.name, report, world.environment(), world.folder)
    return subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, "sh", *command, case.name, str(report)],
        env=world.environment(),
        cwd=world.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _after_the_kill(
    case: CellCase, kind: str, guard: subprocess.Popen[bytes] | Guard, report: Path, world: World, hard: float
) -> CaseResult:
    """Kill the host in the middle of the last cell; whatever it had started must be gone soon."""
    end = time.monotonic() + hard + 30
    last = f"cell {len(case.steps)}"
    while time.monotonic() < end and guard.poll() is None and not any(n.get("note") == last for n in _lines(report)):
        time.sleep(0.02)
    verdict = _verdict(report)
    if verdict is not None and verdict.colour == "n/a":
        return replace(verdict, kind=kind)
    time.sleep(_INTO_THE_CELL)
    hosts = [line["pid"] for line in _lines(report) if "pid" in line]
    if not hosts or _verdict(report) is not None:
        return CaseResult(case.name, kind, "red", f"it never got as far as {last}")
    with contextlib.suppress(OSError):
        os.kill(hosts[0], signal.SIGKILL)
    began = time.monotonic()
    guard.wait()
    left = world.children_left()
    return CaseResult(case.name, kind, "red" if left else "green", left, time.monotonic() - began)


def _wait(guard: subprocess.Popen[bytes] | Guard, report: Path, hard: float, start: float) -> bool:
    """Whether the host had to be given up."""
    end = time.monotonic() + start
    while not any(line.get("note") == READY for line in _lines(report)):
        if guard.poll() is not None or time.monotonic() > end:
            return guard.poll() is None
        time.sleep(0.02)
    try:
        guard.wait(hard)
    except subprocess.TimeoutExpired:
        return True
    return False


def _lines(report: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    with contextlib.suppress(OSError):
        for line in report.read_text("utf-8", "replace").splitlines():
            with contextlib.suppress(ValueError):  # torn: the host died while it wrote
                found.append(json.loads(line))
    return found


def _verdict(report: Path) -> CaseResult | None:
    for line in _lines(report):
        if "verdict" in line:
            return CaseResult(**line["verdict"])
    return None


def _silent(report: Path, guard: subprocess.Popen[bytes] | Guard, timed_out: bool, hard: float) -> str:
    """Why there is no verdict."""
    lines = _lines(report)
    failed = next((line["failed"] for line in lines if "failed" in line), "")
    if failed:
        return failed
    where = next((line["note"] for line in reversed(lines) if "note" in line), "the start")
    if timed_out:
        return f"hung in {where}: killed after {hard:g} s" if where != "the start" else "did not start in time"
    returncode = guard.returncode or 0
    if returncode < 0:
        return f"the process above the host was ended in {where}"
    how = returncode - 128 if returncode > 128 else 0
    return f"the host process died in {where} " + (
        f"({signal.Signals(how).name})" if how in signal.valid_signals() else f"(exit status {returncode})"
    )


class Report:
    """The host's side: what it is about to do, and at the end the verdict, a line each, flushed at once.

    The file is opened anew for every line: a cell may close every descriptor of its host.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._write({"pid": os.getpid()})

    def note(self, text: str) -> None:
        self._write({"note": text})

    def failed(self, text: str) -> None:
        self._write({"failed": text})

    def verdict(self, verdict: CaseResult) -> None:
        self._write({"verdict": verdict.__dict__})

    def _write(self, line: dict[str, Any]) -> None:
        fd = _open(self._path, _FLAGS, 0o600)
        _put(fd, _dumps(line).encode("utf-8", "replace") + b"\n")
        _close(fd)


# Kept from before any cell ran: cells replace what modules and builtins hold.
_open, _put, _close, _dumps, _FLAGS = os.open, os.write, os.close, json.dumps, os.O_WRONLY | os.O_CREAT | os.O_APPEND
