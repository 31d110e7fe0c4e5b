"""The world around a case: a secret, files, ports and a process that a cell must not reach, and how to look at them."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: What a host process needs in its `PYTHONPATH` to import this suite and `rlm_loop`.
SEARCH_PATH = str(Path(__file__).resolve().parents[3])
_PATIENCE = 20.0  # seconds for a killed process to be gone; a busy machine takes its time


class World:
    """Made before a case, looked at after it, closed at the end; all that it makes is removed again.

    It needs Linux: what is left of processes is found through /proc.

    `outside` is what cells are told of it: places, never the secret.  `variable` is the environment variable of the
    host that holds the secret.  `token` marks the processes that cells start (in a command line or as their name).
    """

    def __init__(self) -> None:
        self.secret = "secret-" + secrets.token_hex(12)
        self.token = "".join(secrets.choice("123456789") for _ in range(12))
        self.variable = "ROBUSTNESS_" + self.token
        self.folder = Path(tempfile.mkdtemp(prefix=f"robustness-{self.token}-"))
        self._sockets: list[socket.socket] = []
        self._memory = ctypes.create_string_buffer(self.secret.encode(), 64)
        self.other_file = self.folder / "other.txt"
        self.other_file.write_text(self.secret)
        self.home_file = _home() / f".robustness-{self.token}"
        self.home_file.write_text(self.secret)
        os.environ[self.variable] = self.secret
        self.victim = subprocess.Popen(["sleep", "600", "0.00" + self.token], start_new_session=True)
        self._tcp = self._listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self._udp = self._listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        self._unix = self._listen(socket.AF_UNIX, socket.SOCK_STREAM, str(self.folder / "socket"))
        self.outside: dict[str, Any] = {
            "host": os.getpid(),
            "address": ctypes.addressof(self._memory),
            "variable": self.variable,
            "token": self.token,
            "victim": self.victim.pid,
            "home_file": str(self.home_file),
            "other_file": str(self.other_file),
            "tcp": self._tcp.getsockname()[1],
            "udp": self._udp.getsockname()[1],
            "unix": self._unix.getsockname(),
        }

    def environment(self) -> dict[str, str]:
        """The environment of a host process that is run in this world: it holds the secret, and the way here."""
        place = json.dumps({"secret": self.secret, "outside": self.outside})
        (self.folder / "tmp").mkdir(exist_ok=True)
        own = {self.variable: self.secret, "ROBUSTNESS_WORLD": place, "TMPDIR": str(self.folder / "tmp")}
        return {**with_search_path(), **own}

    def _listen(self, family: socket.AddressFamily, kind: socket.SocketKind, address: Any) -> socket.socket:
        listener = socket.socket(family, kind)
        self._sockets.append(listener)
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen(4)
        return listener

    def fault(self, name: str) -> str:
        """What is wrong with the world, by the name of what to look at; empty if nothing is."""
        return self._looks[name]()

    @property
    def _looks(self) -> Mapping[str, Callable[[], str]]:
        return {
            "home_file_unchanged": lambda: self._changed(self.home_file),
            "other_file_unchanged": lambda: self._changed(self.other_file),
            "no_new_file": lambda: "a file was made outside" if Path(f"{self.other_file}.new").exists() else "",
            "no_connection": lambda: _called(self._tcp, "a connection was made to a port of this machine"),
            "no_datagram": lambda: _called(self._udp, "a datagram was sent to this machine"),
            "no_unix_connection": lambda: _called(self._unix, "a connection was made to a socket outside"),
            "victim_alive": lambda: "" if self.victim.poll() is None else "a process outside was ended",
            "no_children": self.children_left,
        }

    def _changed(self, file: Path) -> str:
        with contextlib.suppress(OSError):
            return "" if file.read_text() == self.secret else "a file outside was changed"
        return "a file outside was removed"

    def children_left(self) -> str:
        """Which processes that bear the token are there, once those that were killed have had time to go."""
        end = time.monotonic() + _PATIENCE
        while (left := marked(self.token) - {self.victim.pid}) and time.monotonic() < end:
            time.sleep(0.02)
        return f"{len(left)} processes were left behind" if left else ""

    def close(self) -> None:
        """Remove all of it, processes with the token included."""
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

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class Surroundings:
    """A world as seen by the process that hosts the session: the secret, and what cells are told."""

    secret: str
    outside: Mapping[str, Any]

    @classmethod
    def of(cls, world: World) -> Surroundings:
        return cls(world.secret, world.outside)

    @classmethod
    def here(cls) -> Surroundings:
        """The place that this process was started in by `apart.run_apart`; the secret is put into its memory."""
        found = json.loads(os.environ.pop("ROBUSTNESS_WORLD"))
        _buried.append(ctypes.create_string_buffer(found["secret"].encode(), 64))
        address = ctypes.addressof(_buried[-1])
        return cls(found["secret"], {**found["outside"], "host": os.getpid(), "address": address})


def with_search_path() -> dict[str, str]:
    """The environment of this process, with which another one can import this suite."""
    path = os.pathsep.join([SEARCH_PATH, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


_buried: list[Any] = []  # kept: cells are told where it lies


def marked(mark: str) -> set[int]:
    """Running processes that bear a mark: in their name, command line, first environment or working folder."""
    found: set[int] = set()
    needle = mark.encode()
    for entry in os.scandir("/proc") if os.path.isdir("/proc") else ():
        if entry.name.isdigit() and int(entry.name) != os.getpid() and _bears(entry.path, needle):
            found.add(int(entry.name))
    return found


def _bears(path: str, needle: bytes) -> bool:
    with contextlib.suppress(OSError):
        with open(f"{path}/stat", "rb") as f:
            if f.read().rpartition(b")")[2].split()[0] in (b"Z", b"X"):
                return False  # it has ended, and only waits to be counted
        for name in ("comm", "cmdline"):
            with open(f"{path}/{name}", "rb") as f:
                if needle in f.read():
                    return True
        with contextlib.suppress(PermissionError):
            return needle in os.fsencode(os.readlink(f"{path}/cwd"))
    return False


def _home() -> Path:
    home = Path.home()
    return home if os.access(home, os.W_OK) else Path(tempfile.gettempdir())


def _called(listener: socket.socket, what: str) -> str:
    time.sleep(0.05)
    return what if select.select([listener], [], [], 0)[0] else ""
