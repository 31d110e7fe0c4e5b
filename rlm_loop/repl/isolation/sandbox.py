"""Cells in a bubblewrap sandbox: a file system put together from nothing, and namespaces of their own (bwrap(1))."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.clearing import remove
from rlm_loop.repl.host.launch import WORKER, Launch, folders, isolated_environment, script
from rlm_loop.repl.isolation import seccomp
from rlm_loop.repl.isolation.ordinary_user import cell_user
from rlm_loop.repl.isolation.readable import HARDEN, SETTINGS, SYSTEM, Readable, readable

_APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")


@dataclass(frozen=True)
class Sandbox:
    """A launcher: the worker in a sandbox made by bubblewrap.

    Cells see the system, the interpreter and the folders in `read`, all read-only; the working folder; and a `/tmp`
    of `temporary` bytes in memory.  No network, no other processes, nothing else of the user's.  Where the host is
    root they run as an ordinary user.
    """

    read: tuple[str | Path, ...] = ()
    temporary: int = 512 << 20
    program: str = "bwrap"
    kind = "sandbox"

    def problem(self, python: str) -> str:
        """Return why this launcher does not work here, in one line; an empty string where it does.

        Tried once per process, and by one thread while the others wait for what it finds.
        """
        with _probing:
            return _probe(self, python)

    def __call__(self, python: str, options: str) -> Launch:
        """Raises `ReplError` without bubblewrap, and for a working folder that would open the whole machine.

        Raises its `RootFolder` where no ordinary user may write to the working folder.
        """
        cwd, home = folders(options)
        environment = isolated_environment("/tmp")
        needed = readable(python, environment, self.read)
        scripts = [script(s, python, options) for s in (HARDEN, WORKER)]
        argv = self.command(cwd, home, needed, scripts, [python, "-u"])
        return Launch((*argv, options), environment, self.kind)

    def command(self, cwd: Path, home: Path, needed: Readable, scripts: list[str], python: list[str]) -> list[str]:
        """All but the arguments of the script that is to be run.

        `needed` is readable besides the system, `scripts` are the files of `harden.py` and of what it runs (or of
        itself alone), `python` is the interpreter with its options.
        """
        program = shutil.which(self.program)
        if program is None:
            raise ReplError(f"{self.program} is not installed: apt-get install bubblewrap, or use another launcher")
        if cwd == Path("/") or any(Path(s).is_relative_to(cwd) for s in SYSTEM):
            raise ReplError(f"the working folder {str(cwd)!r} holds the system: choose one below it for a sandbox")
        user = cell_user(cwd, home)
        size = _version(program) >= (0, 7)
        argv = [program, *_namespaces(user is not None)]
        argv += ["--dev", "/dev", *_memory("/dev/shm", self.temporary, size), *_memory("/tmp", self.temporary, size)]
        argv += ["--proc", "/proc", *(["--ro-bind", "/proc/sys", "/proc/sys"] if user is not None else [])]
        # The private folder, and the package's own, are closed to the user as which `harden.py` begins.
        inside = [f"/run/rlm-loop/{Path(f).name}" for f in scripts]
        made = [*_accounts(home, user or (os.getuid(), os.getgid())), *zip(scripts, inside, strict=True)]
        argv += _files(needed, cwd, home, made)
        code = seccomp.for_this_machine(shares="nothing")
        rights = json.dumps({"user": user, "folder": str(cwd), "filter": code.hex()})
        return [*argv, "--chdir", "/", "--", *python, inside[0], rights, *inside[1:]]


def _namespaces(root: bool) -> list[str]:
    argv = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    argv += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if not root:
        return [*argv, "--unshare-user"]
    # In a user namespace of root's, cells would still be the kernel's uid 0, which owns /proc/sys.  Without one, root
    # can read its own interpreter, and `harden.py` becomes an ordinary user with these, and then drops them.
    return [*argv, *(w for c in ("SETUID", "SETGID", "SETPCAP") for w in ("--cap-add", f"CAP_{c}"))]


def _memory(place: str, size: int, sized: bool) -> list[str]:
    """A folder in memory; by default it might take half of the machine's."""
    return ["--perms", "1777", *(["--size", str(size)] if sized else []), "--tmpfs", place]


def _accounts(home: Path, user: tuple[int, int]) -> list[tuple[str, str]]:
    """Files that name the cells' user, and this machine: libraries look both up, and need nothing of the host's."""
    folder = home / "etc"
    folder.mkdir(exist_ok=True)
    texts = {
        "passwd": f"cells:x:{user[0]}:{user[1]}::/tmp:/bin/sh\n",
        "group": f"cells:x:{user[1]}:\n",
        "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o644)
    return [(str(folder / name), f"/etc/{name}") for name in texts]


def _files(needed: Readable, cwd: Path, home: Path, made: list[tuple[str, str]]) -> list[str]:
    """The file system, outer folders first, so that what lies within another keeps its own rights."""
    argv: list[str] = []
    for path in filter(os.path.lexists, SYSTEM):
        argv += ["--symlink", os.readlink(path), path] if os.path.islink(path) else []
    wanted = {p: p for p in (*SYSTEM, *SETTINGS) if os.path.exists(p) and not (p in SYSTEM and os.path.islink(p))}
    wanted |= {p: p for path in needed.paths for p in (path, os.path.realpath(path))}
    wanted |= {inside: source for source, inside in made}
    wanted |= dict.fromkeys(needed.hidden, "")
    writable, wanted[str(home)], wanted[str(cwd)] = str(cwd), str(home), str(cwd)
    bound: dict[str, str] = {}
    there = {"/", "/tmp", "/dev", "/proc"}
    for inside in sorted(wanted, key=lambda p: len(Path(p).parts)):
        above = [str(p) for p in Path(inside).parents]
        around = next((p for p in above if p in bound), "")
        if not wanted[inside]:  # an empty folder in front of it, in which something may yet be shown
            # One that a link leads to is hidden where it lies, unless the folder around it is shown by this name too.
            if around and (around == above[0] or inside == os.path.realpath(inside)):
                argv += ["--perms", "0755", "--tmpfs", inside]
                bound[inside] = "--remount-ro"
            continue
        option = "--bind" if inside == writable else "--ro-bind"
        if around and bound[around] == option and inside != writable:
            continue
        if not around:  # bubblewrap would make the folders on the way readable to itself only
            for parent in reversed(above):
                argv += [] if parent in there else ["--perms", "0755", "--dir", parent]
                there.add(parent)
        argv += [option, wanted[inside], inside]
        bound[inside] = option
    return argv + [word for path, option in bound.items() if option == "--remount-ro" for word in (option, path)]


@functools.lru_cache(maxsize=8)
def _version(program: str) -> tuple[int, ...]:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return tuple(int(n) for n in done.stdout.split()[-1].split(".") if n.isdigit()) if done.stdout.split() else ()


_probing = threading.Lock()


@functools.lru_cache(maxsize=8)
def _probe(sandbox: Sandbox, python: str) -> str:
    """Start the interpreter in a sandbox, once."""
    home = Path(tempfile.mkdtemp(prefix="rlm-loop-")).resolve()
    try:
        cwd = home / "work"
        cwd.mkdir()
        environment = isolated_environment("/tmp")
        needed = readable(python, environment, sandbox.read)
        # Without site-packages, which take half of a start: whether it starts at all is the question.
        argv = [*sandbox.command(cwd, home, needed, [str(HARDEN)], [python, "-I", "-S"]), os.devnull]
        done = subprocess.run(
            argv, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, timeout=60
        )
    except (ReplError, OSError, subprocess.TimeoutExpired) as e:
        return str(e)
    finally:
        remove(home)
    if done.returncode == 0:
        return ""
    reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    if _APPARMOR.exists() and _APPARMOR.read_text().strip() == "1":
        reason += "; AppArmor forbids it here until root gives bwrap a profile with the rule userns (docs/isolation.md)"
    return reason
