"""The world around a case: a secret, files, ports and a process that a cell must not reach, and how to look at them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.util import get_temp_dir
from pathlib import Path
from typing import Any

_PATIENCE = 20.0  # seconds for a killed process to be gone; a busy machine takes its time


class World:
    """Made before a case, looked at after it; removes at the end all that it made.  Linux only: it reads /proc.

    `outside` is told to cells: places, never the secret.  `token` marks the processes that cells start.
    """

    def __init__(self) -> None:
        self.secret = "secret-" + secrets.token_hex(12)
        self.token = "".join(secrets.choice("123456789") for _ in range(12))
        self.variable = "ROBUSTNESS_" + self.token
        self.folder = Path(tempfile.mkdtemp(prefix=f"robustness-{self.token}-"))
        (self.folder / "tmp").mkdir()
        self._sockets: list[socket.socket] = []
        self.other_file = self.folder / "other.txt"
        self.other_file.write_text(self.secret)
        home = Path.home() if os.access(Path.home(), os.W_OK) else Path(tempfile.gettempdir())
        self.home_file = home / f".robustness-{self.token}"
        self.home_file.write_text(self.secret)
        os.environ[self.variable] = self.secret
        self.victim = subprocess.Popen(["sleep", "600", "0.00" + self.token], start_new_session=True)
        self._tcp = self._listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self._udp = self._listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        self._unix = self._listen(socket.AF_UNIX, socket.SOCK_STREAM, str(self.folder / "socket"))
        self.outside: dict[str, Any] = {
            "variable": self.variable,
            "token": self.token,
            "victim": self.victim.pid,
            "home_file": str(self.home_file),
            "other_file": str(self.other_file),
            "tcp": self._tcp.getsockname()[1],
            "udp": self._udp.getsockname()[1],
            "unix": self._unix.getsockname(),
            **buried(self.secret),
        }

    def environment(self) -> dict[str, str]:
        """Return the environment of a host process in this world; it holds the secret."""
        return {**os.environ, self.variable: self.secret, "TMPDIR": str(self.folder / "tmp")}

    def _listen(self, family: socket.AddressFamily, kind: socket.SocketKind, address: Any) -> socket.socket:
        listener = socket.socket(family, kind)
        self._sockets.append(listener)
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen(4)
        return listener

    def fault(self, name: str) -> str:
        """Return the fault of the world, by the name of the look (empty: none)."""
        looks = {
            "": lambda: "",
            "home_file_unchanged": lambda: self._changed(self.home_file),
            "other_file_unchanged": lambda: self._changed(self.other_file),
            "no_new_file": lambda: "a file was made outside" if Path(f"{self.other_file}.new").exists() else "",
            "no_connection": lambda: _called(self._tcp),
            "no_datagram": lambda: _called(self._udp),
            "no_unix_connection": lambda: _called(self._unix),
            "victim_alive": lambda: "" if self.victim.poll() is None else "a process outside was ended",
            "no_children": self.children_left,
        }
        return looks[name]()

    def _changed(self, file: Path) -> str:
        with contextlib.suppress(OSError):
            return "" if file.read_text() == self.secret else "a file outside was changed"
        return "a file outside was removed"

    def children_left(self) -> str:
        """Return a fault if processes with the token are there after killed ones had time to go."""
        end = time.monotonic() + _PATIENCE
        while (left := marked(self.token) - {self.victim.pid}) and time.monotonic() < end:
            time.sleep(0.02)
        return f"{len(left)} processes were left behind" if left else ""

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in marked(self.token) - {self.victim.pid}:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.victim.kill()
        self.victim.wait()
        for listener in self._sockets:
            listener.close()
        os.environ.pop(self.variable, None)
        self.home_file.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)


_buried: list[Any] = []  # kept: cells are told where it lies


def buried(secret: str) -> dict[str, int]:
    """Put the secret into this process's memory; return where."""
    _buried.append(ctypes.create_string_buffer(secret.encode(), 64))
    return {"host": os.getpid(), "address": ctypes.addressof(_buried[-1])}


def marked(mark: str) -> set[int]:
    """Return the running processes that bear a mark in their name, command line or working folder."""
    pids = [name for name in (os.listdir("/proc") if os.path.isdir("/proc") else ()) if name.isdigit() and _runs(name)]
    return {int(pid) for pid in pids if int(pid) != os.getpid() and _bears(f"/proc/{pid}", mark.encode())}


def _bears(path: str, mark: bytes) -> bool:
    with contextlib.suppress(OSError):
        if any(mark in Path(path, name).read_bytes() for name in ("comm", "cmdline")):
            return True
        return mark in os.fsencode(os.readlink(f"{path}/cwd"))
    return False


def _called(listener: socket.socket) -> str:
    time.sleep(0.05)
    return "a connection or datagram came from the cell" if select.select([listener], [], [], 0)[0] else ""


@contextlib.contextmanager
def leaving_nothing(prefix: str) -> Iterator[None]:
    """Fail at the end if a process is left that works in a temporary folder of this time, or that this one started."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    folder.chmod(0o755)  # cells of an isolated session run as another user
    before, environ, tempdir = _children(), os.environ.get("TMPDIR"), tempfile.tempdir
    get_temp_dir()  # pools have theirs outside of the folder that is swept: they remove it when this process ends
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = tempdir
        os.environ.pop("TMPDIR") if environ is None else os.environ.update(TMPDIR=environ)
    killed = "rlm-loop-episode-"  # of workers that a test ends with SIGKILL, which nobody can tidy up after
    end = time.monotonic() + 30
    while True:  # a session that a stopped run had is closed in a thread: its process ends before its folder goes
        left = {p for p in marked(folder.name) | _children() - before if not _of_pools(p)}
        homes = [p.name for p in folder.iterdir() if p.name.startswith("rlm-loop-") and not p.name.startswith(killed)]
        if not (left or homes) or time.monotonic() > end:
            break
        time.sleep(0.02)
    shown = [_command(pid) for pid in left]
    shutil.rmtree(folder, ignore_errors=True)
    assert not left, f"processes were left behind: {shown}"
    assert not homes, f"private folders of sessions were left behind: {homes}"


def _children() -> set[int]:
    """Running processes that this one started."""
    found: set[str] = set()
    for path in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found |= {*path.read_text().split()}
    return {int(pid) for pid in found if _runs(pid)}


def _runs(pid: str) -> bool:
    """Return True for a process that has not ended; one that has may still wait to be counted."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    return False


def _of_pools(pid: int) -> bool:
    """Whether it is one of the two helpers of `multiprocessing`, which end with the process that has pools."""
    return any(name in _command(pid) for name in (b"multiprocessing.resource_tracker", b"multiprocessing.forkserver"))


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()[:300]
    return b"(it has just ended)"
