"""Warm starts: one process that has everything imported, and forks a fresh REPL in milliseconds.

    with Zygote(preload=["pandas"]) as zygote:
        agent = LeanAgent(repl=zygote.repl)

A forked REPL is as good as a started one: a supervisor and a process group of its own, its own folder, environment,
pipes and random numbers; it can be interrupted and killed, and ends with the host.  It shares the memory of what
was imported.  The host itself is never forked, so its threads do not matter.

Each is confined by itself, after the fork: with landlock rules, a seccomp filter and (for root) a user of its own,
as `hardened` is.  So sessions of one zygote are as far apart as sessions without one.  The process that is forked from
runs no cell, and has the user's rights.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.launch import Launcher, default_python, plain
from rlm_loop.repl.host.outgoing import close_all
from rlm_loop.repl.isolation.kinds import launcher_named
from rlm_loop.repl.isolation.readable import HARDEN

if TYPE_CHECKING:
    from rlm_loop.repl.host.process import Starter
    from rlm_loop.repl.isolation.kinds import Remembered
    from rlm_loop.repl.session import PythonREPL

_PATIENCE = 60.0  # seconds for the imports, on a slow machine with cold files


class Zygote:
    """Starts REPLs by forking.  Safe to use from any thread; it starts at first use.

    - `preload`: modules to import beforehand, by name; one that fails to import raises `ReplError` at the start.
    - `pool`: how many processes are kept forked ahead.
    - `python` and `launcher`: how the process that is forked from is started.  With a launcher other than `plain` the
      sessions are not confined by themselves: they are as far apart from the machine as that process is, and share
      its folders.

    `close`, leaving the `with` block, and the end of the host end the process and every REPL that it forked; a session
    whose REPL went that way gets a new one at its next use, from a zygote that starts again.
    """

    def __init__(
        self,
        preload: Iterable[str] = (),
        *,
        pool: int = 0,
        python: str | None = None,
        launcher: Launcher | str = plain,
    ) -> None:
        if isinstance(preload, str) or pool < 0:
            raise ValueError("preload is a list of module names, and pool not negative")
        self.preload, self.pool = tuple(preload), pool
        self.python = python or default_python()
        self._launcher = launcher_named(launcher)
        self._turns = threading.Lock()
        self._process: _Process | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None

    @property
    def pid(self) -> int | None:
        """The process id, or `None` while it does not run."""
        return None if self._process is None else self._process.popen.pid

    def repl(self, **options: Any) -> PythonREPL:
        """A session forked from this zygote; `options` are those of `PythonREPL` (but for `sandbox`)."""
        from rlm_loop.repl.session import PythonREPL

        return PythonREPL(zygote=self, **options)

    def start(self) -> None:
        """Start now, so that the first REPL need not wait for the imports."""
        with self._turns:
            self._running()

    def starter(self, launcher: Remembered) -> Starter:
        """What starts the workers of a session; `launcher` is how each is confined.

        Raises `ValueError` for one that has to be put around a process when it is started.
        """
        if not launcher.forks:
            raise ValueError(
                "only a process that is started can be put into a sandbox or a container: with a zygote choose "
                'launcher="hardened" (the default where it works) or "plain", or leave out the zygote'
            )

        def start(options: Mapping[str, Any], cwd: Path, log: Path) -> Forked:
            confining = launcher if self._launcher is plain else plain  # else it is inside another's isolation
            given = confining.confinement(self.python, json.dumps(options))
            own = json.loads(given.options)
            if sys.platform.startswith("linux"):
                own["direct"] = True
            order = {"t": "fork", "options": own, "cwd": str(cwd), "env": dict(given.env)}
            with self._turns:
                if self._process is not None and self._process.popen.poll() is not None:
                    self._stop()
                process = self._running()
                if self._launcher is not plain:
                    launcher.kind, launcher.note = process.kind, "sessions of this zygote share its folders"
                return process.fork({**order, "rights": given.rights}, log)

        return start

    def close(self) -> None:
        """End the process and the REPLs that it forked.  May be called again; a later `fork` starts it anew."""
        with self._turns:
            self._stop()

    def __enter__(self) -> Zygote:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _running(self) -> _Process:
        if self._process is None:
            harden = str(HARDEN) if self._launcher is plain and sys.platform.startswith("linux") else ""
            options = {"preload": self.preload, "spare": self.pool, "harden": harden}
            process = _Process(self._launcher, self.python, options)
            self._process = process
            self._finalizer = weakref.finalize(self, _Process.end, process, os.getpid())
        return self._process

    def _stop(self) -> None:
        self._process = None
        if self._finalizer is not None:
            self._finalizer()


class _Process:
    """The process that is forked from, and the socket on which it is asked."""

    def __init__(self, launcher: Launcher, python: str, options: Mapping[str, Any]) -> None:
        launch = launcher(python, json.dumps({"zygote": options}))
        self.kind = launch.kind
        self._sock, theirs = socket.socketpair()
        self._sock.settimeout(_PATIENCE)
        self._asking = threading.Lock()
        self._orders = 0
        try:
            self.popen = subprocess.Popen(
                launch.argv,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(launch.env),
                start_new_session=True,
            )
        except OSError as e:
            self._sock.close()
            raise ReplError(f"cannot start the zygote with {launch.argv[0]!r}: {e.strerror or e}") from e
        finally:
            theirs.close()
        try:
            ready = self._answer()
            if failed := ready.get("failed"):
                raise ReplError("cannot preload " + "; ".join(f"{name} ({why})" for name, why in failed.items()))
        except BaseException:
            self.end(os.getpid())
            raise

    def fork(self, order: Mapping[str, Any], log: Path) -> Forked:
        self._orders += 1
        number, answer = self._orders, {"n": -1}
        line: socket.socket | None = None
        ours, theirs = [-1, -1, -1], [-1, -1, -1, -1]
        try:
            if order["options"].get("direct"):
                line, other = socket.socketpair()
                theirs[0] = other.detach()
                theirs[1] = os.dup(theirs[0])
            else:
                theirs[0], ours[0] = os.pipe()
                ours[1], theirs[1] = os.pipe()
            ours[2], theirs[3] = os.pipe()
            theirs[2] = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with self._asking:
                socket.send_fds(self._sock, [json.dumps({**order, "n": number}).encode() + b"\n"], theirs)
                while answer["n"] != number:  # an earlier wait may have been interrupted
                    answer = self._answer()
            return Forked(self, answer["pid"], line, *ours)
        except BaseException as e:
            with contextlib.suppress(OSError):  # should it start yet, it must not take the host for gone
                os.write(ours[0] if line is None else line.fileno(), b"!quit\n")
            if line is not None:
                line.close()
            close_all(*ours)
            if isinstance(e, OSError):
                raise ReplError(f"the zygote cannot start a REPL: {e}") from e
            raise
        finally:
            close_all(*theirs)

    def kill(self, pid: int) -> None:
        """Ask it to end a worker by force: pids are its business, since it knows which are still alive."""
        with contextlib.suppress(OSError), self._asking:
            self._sock.sendall(json.dumps({"t": "kill", "pid": pid}).encode() + b"\n")

    def end(self, owner: int) -> None:
        if os.getpid() != owner:
            return  # a forked copy of the host: the process is not its own
        with contextlib.suppress(OSError):
            self._sock.sendall(b'{"t":"end"}\n')
        try:
            self.popen.wait(2)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        self._sock.close()

    def _answer(self) -> dict[str, Any]:
        data = b""
        try:
            while not data.endswith(b"\n"):
                more = self._sock.recv(1 << 16)
                if not more:
                    raise ReplError(f"the zygote ended (exit status {self.popen.wait(5)})")
                data += more
        except TimeoutError:
            raise ReplError(f"the zygote did not answer within {_PATIENCE:g} s") from None
        return json.loads(data)


class Forked:
    """A worker that a zygote forked: a `process.Running`."""

    def __init__(
        self, zygote: _Process, pid: int, line: socket.socket | None, stdin: int, stdout: int, status: int
    ) -> None:
        self._zygote, self.pid, self.line = zygote, pid, line
        self.stdin, self.stdout, self._status = stdin, stdout, status
        self._ended: int | None = None

    def wait(self, seconds: float) -> int | None:
        """The status as of `os.waitpid`; -1 where the zygote ended before it could tell."""
        if self._ended is None:
            poll = select.poll()
            poll.register(self._status, select.POLLIN)
            if poll.poll(max(0.0, seconds) * 1000):
                told = os.read(self._status, 32)
                self._ended = int(told) if told.strip().isdigit() else -1
        return self._ended

    def kill(self, repl_pid: int | None) -> None:
        end = time.monotonic() + 2
        if self.wait(0) is None:
            self._zygote.kill(self.pid)
            self.wait(end - time.monotonic())

    def release(self) -> None:
        close_all(self.stdin, self.stdout, self._status)
        if self.line is not None:
            self.line.close()
