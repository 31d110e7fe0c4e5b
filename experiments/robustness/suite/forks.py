"""Hosts for cases forked from one process that has imported everything, since imports take longer than most cases.

    with Forks(host_command("plain")) as forks:
        verdict = run_apart(host_command("plain"), case, kind="plain", forks=forks)

A forked host keeps, in /proc, the environment of the process that it was forked from, so the cases that look for the
secret there get a process that was started for them (see `apart`).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

SERVE = "--serve"
"""The further argument with which a host's command serves forks instead of running one case."""


class Asked(NamedTuple):
    """What a forked host is to do."""

    case: str
    report: str


class Guard:
    """The process above a forked host, with what is used of a `Popen`: `pid` leads its group and session."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ended = threading.Event()

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises `subprocess.TimeoutExpired` where it takes longer."""
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired("a forked host", timeout or 0.0)
        return self.returncode or 0

    def end(self, returncode: int) -> None:
        self.returncode = returncode
        self._ended.set()


class Forks:
    """A server of forks, started when first needed and again after it died.  One host at a time: one for a thread.

    `environment` is that of the server (default: this process's); a host gets its case's own.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._command, self._environment = [*command, SERVE], environment
        self._server: subprocess.Popen[bytes] | None = None

    def start(self, case: str, report: Path, environment: Mapping[str, str], folder: Path) -> Guard:
        """A guard with a host below it; raises `OSError` where no server can be had."""
        asked = {"case": case, "report": str(report), "environment": dict(environment), "folder": str(folder)}
        for _ in range(2):
            server = self._running()
            with contextlib.suppress(OSError, ValueError):
                assert server.stdin is not None
                assert server.stdout is not None
                server.stdin.write(json.dumps(asked).encode() + b"\n")
                server.stdin.flush()
                guard = Guard(int(server.stdout.readline()))
                threading.Thread(target=self._watch, args=(server, guard), daemon=True).start()
                return guard
            self.close()
        raise OSError(f"{' '.join(self._command)} does not start: run it by hand to see why")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._server is not None and self._server.poll() is not None:
            self.close()
        if self._server is None:
            self._server = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        return self._server

    @staticmethod
    def _watch(server: subprocess.Popen[bytes], guard: Guard) -> None:
        assert server.stdout is not None
        line = server.stdout.readline()
        guard.end(int(line) if line.strip() else -signal.SIGKILL)

    def close(self) -> None:
        """End the server; hosts that it forked are not looked at."""
        server, self._server = self._server, None
        if server is not None:
            server.kill()
            server.communicate()

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def ordinary_interrupt() -> None:
    """Ctrl-C does in this process what it does in a program that somebody started: a shell's `&` has it ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def serve() -> Asked:
    """Be the server: fork a guard and a host for every line read, and return in each host; ends the process at the end.

    To be called when everything that a host needs is imported, and before there is any thread.
    """
    while line := sys.stdin.buffer.readline():
        asked: dict[str, Any] = json.loads(line)
        guard = os.fork()
        if guard == 0:
            return _below_a_guard(asked)
        _say(guard)
        _say(os.waitstatus_to_exitcode(os.waitpid(guard, 0)[1]))
    raise SystemExit(0)


def _below_a_guard(asked: dict[str, Any]) -> Asked:
    """In the forked process: become the guard of another one, and return in that, the host."""
    os.setsid()
    os.chdir(asked["folder"])
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    os.close(nothing)
    host = os.fork()
    if host:
        code = os.waitstatus_to_exitcode(os.waitpid(host, 0)[1])
        os._exit(code if code >= 0 else 128 - code)
    ordinary_interrupt()
    os.environ.clear()
    os.environ.update(asked["environment"])
    tempfile.tempdir = None  # it may have been looked up before
    return Asked(asked["case"], asked["report"])


def _say(number: int) -> None:
    os.write(1, b"%d\n" % number)
