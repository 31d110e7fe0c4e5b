"""Launchers that keep cells apart from this machine, their names, and the choice of the strongest.

`Hardened` is a process that has given up its rights, by landlock and seccomp: no package, no root, no start-up cost.
It closes files, the network and other processes; the kernel and its process table are shared with the host.
`Sandbox` is bubblewrap's: a file system put together from nothing, and namespaces of their own (bwrap(1)).
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.clearing import temporary
from rlm_loop.repl.host.launch import TEMPORARY, Launch, Launcher, Options, folders, plain, script
from rlm_loop.repl.isolation import seccomp
from rlm_loop.repl.isolation.harden import landlock_abi
from rlm_loop.repl.isolation.ordinary_user import RootFolder, cell_user, may_read
from rlm_loop.repl.isolation.readable import HARDEN, SETTINGS, SYSTEM, THE_WORKER, Script, readable
from rlm_loop.repl.worker import tasks_of_user

# What counting processors and measuring memory reads.  /proc/self is the REPL.
_MEASURED = (
    "/proc/self /proc/cpuinfo /proc/meminfo /proc/stat /proc/loadavg /proc/version /proc/filesystems "
    "/sys/devices/system/cpu /sys/devices/system/node /sys/fs/cgroup/cpu.max "
    "/sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu/cpu.cfs_period_us"
)
_KERNEL = (*_MEASURED.split(), "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


@dataclass(frozen=True)
class Hardened:
    """A launcher: the worker under landlock and seccomp, with what this kernel has of them.

    Cells read the system, the interpreter and the folders in `read`; they write to the working folder and to a
    temporary folder of their own.  Where the host is root they run as an ordinary user, if the working folder allows.
    """

    read: Sequence[str | Path] = ()
    kind = "hardened"

    def problem(self, _python: str = "") -> str:
        """Return why this launcher does not work here, in one line; an empty string where it does."""
        missing = "this kernel has no landlock (it came with Linux 5.13), or it is not in its lsm= boot parameter"
        return "" if landlock_abi() else missing

    def __call__(self, python: str, options: Options, run: Script = THE_WORKER) -> Launch:
        """Raises `ReplError` where the kernel has no landlock: then nothing is started."""
        if problem := self.problem():
            raise ReplError(f'cannot isolate the REPL: {problem}; use another launcher, or launcher="plain" for none')
        cwd, home = folders(options)
        temporary = home / "tmp"
        temporary.mkdir(exist_ok=True)
        environment = run.environment(str(temporary))
        needed, hidden = readable(python, environment, self.read)
        paths = [*needed, str(run.file), str(HARDEN)]
        user, keep_read = _user(cwd, home, paths)
        code = seccomp.for_this_machine(alone=False)
        rights = {
            "user": user,
            "keep_read": keep_read,
            "read": [*SYSTEM, *SETTINGS, *paths, *_KERNEL, str(home)],
            "hidden": hidden,
            "write": [str(cwd), str(temporary), "/dev/null"],
            "filter": code.hex(),
        }
        harden, file = (script(source, python, options) for source in (HARDEN, run.file))
        argv = (python, *run.flags, harden, json.dumps(rights), file, *run.arguments(_with_others(options, user)))
        return Launch(argv, environment, self.kind)


def _user(cwd: Path, home: Path, paths: list[str]) -> tuple[tuple[int, int] | None, bool]:
    """Return the cells' user and True if it needs to read files of root's.

    No user: ours; where that is root who cannot change to another, root without its capabilities.
    """
    with suppress(RootFolder):
        user = cell_user(cwd, home)
        if user is None or may_read([*paths, str(home.parent)]):
            return user, False
        # Without the filter, handles would open files past landlock.
        capabilities = int(Path("/proc/self/status").read_text().partition("CapEff:")[2].split()[0], 16)
        if seccomp.available() and capabilities & 1 << 2:  # CAP_DAC_READ_SEARCH, which can be left to the worker
            return user, True
    return None, False


def _with_others(options: Options, user: tuple[int, int] | None) -> Options:
    """Tell the worker how many processes its user has, which it cannot see for itself."""
    limits = options.get("limits", {})
    if "processes" not in limits:
        return options
    same = user is None or user[0] == os.getuid()
    return {**options, "limits": {**limits, "others": tasks_of_user() + 1 if same else 2}}


@dataclass(frozen=True)
class Sandbox:
    """A launcher: the worker in a sandbox made by bubblewrap.

    Cells see the system, the interpreter and the folders in `read`, all read-only; the working folder; and a `/tmp`
    of 512 MiB in memory.  No network, no other processes, nothing else of the user's.  Where the host is
    root they run as an ordinary user.
    """

    read: Sequence[str | Path] = ()
    kind = "sandbox"

    def __post_init__(self) -> None:
        object.__setattr__(self, "read", tuple(self.read))

    @functools.lru_cache(maxsize=8)  # noqa: B019  # few are made, and each start takes time
    def problem(self, python: str) -> str:
        """Return why this launcher does not work here, in one line; an empty string where it does.  Tried once."""
        how: dict[str, Any] = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, "timeout": 60}
        try:
            with temporary("rlm-loop-") as home:
                (home / "work").mkdir()
                (home / "nothing.py").touch()
                options = {"path": [str(home / "work")], "home": str(home)}
                # Without site-packages, which take half of a start: whether it starts at all is the question.
                launch = self(python, options, Script(home / "nothing.py", ("-I", "-S")))
                done = subprocess.run(launch.argv, env=launch.env, **how)
        except (ReplError, OSError, subprocess.TimeoutExpired) as e:
            return str(e)
        if done.returncode == 0:
            return ""
        return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]

    def __call__(self, python: str, options: Options, run: Script = THE_WORKER) -> Launch:
        """Raises `ReplError` without bubblewrap, and for a working folder that would open the whole machine.

        Raises its `RootFolder` where no ordinary user may write to the working folder.
        """
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            raise ReplError("bwrap is not installed: apt-get install bubblewrap, or use another launcher")
        cwd, home = folders(options)
        if cwd == Path("/") or any(Path(s).is_relative_to(cwd) for s in SYSTEM):
            raise ReplError(f"the working folder {str(cwd)!r} holds the system: choose one below it for a sandbox")
        environment = run.environment("/tmp")
        needed, hidden = readable(python, environment, self.read)
        scripts = [script(source, python, options) for source in (HARDEN, run.file)]
        user = cell_user(cwd, home)
        argv = [bwrap, *_namespaces(user is not None), "--dev", "/dev"]
        size = ["--size", str(TEMPORARY)] if _version(bwrap) >= (0, 7) else []  # else half of the machine's
        for place in ("/dev/shm", "/tmp"):
            argv += ["--perms", "1777", *size, "--tmpfs", place]
        argv += ["--proc", "/proc", *(["--ro-bind", "/proc/sys", "/proc/sys"] if user is not None else [])]
        # The private folder, and the package's own, are closed to the user as which `harden.py` begins.
        inside = [f"/run/rlm-loop/{Path(f).name}" for f in scripts]
        made = [*_accounts(home, user or (os.getuid(), os.getgid())), *zip(scripts, inside, strict=True)]
        argv += _files(needed, hidden, cwd, home, made)
        code = seccomp.for_this_machine(alone=True)
        rights = json.dumps({"user": user, "folder": str(cwd), "filter": code.hex()})
        argv += ["--chdir", "/", "--", python, *run.flags, inside[0], rights, inside[1], *run.arguments(options)]
        return Launch(tuple(argv), environment, self.kind)


def _namespaces(root: bool) -> list[str]:
    argv = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    argv += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if not root:
        return [*argv, "--unshare-user"]
    # In a user namespace of root's, cells would still be the kernel's uid 0, which owns /proc/sys.  Without one, root
    # can read its own interpreter, and `harden.py` becomes an ordinary user with these, and then drops them.
    return [*argv, *(w for c in ("SETUID", "SETGID", "SETPCAP") for w in ("--cap-add", f"CAP_{c}"))]


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


def _files(needed: list[str], hidden: list[str], cwd: Path, home: Path, made: list[tuple[str, str]]) -> list[str]:
    """The file system, outer folders first, so that what lies within another keeps its own rights."""
    argv: list[str] = []
    for path in filter(os.path.lexists, SYSTEM):
        argv += ["--symlink", os.readlink(path), path] if os.path.islink(path) else []
    wanted = {p: p for p in (*SYSTEM, *SETTINGS) if os.path.exists(p) and not (p in SYSTEM and os.path.islink(p))}
    wanted |= {p: p for path in needed for p in (path, os.path.realpath(path))}
    wanted |= {inside: source for source, inside in made}
    wanted |= dict.fromkeys(hidden, "")
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


def strongest(python: str, options: Options) -> Launch:
    """A launcher: a sandbox or `hardened` where that works here, else `plain` with a warning.

    A working folder of root's, where the host is root, gets no sandbox: it is `hardened` at best.
    """
    for launcher in (LAUNCHERS["sandbox"], LAUNCHERS["hardened"]):
        if not launcher.problem(python):
            with suppress(RootFolder):
                return launcher(python, options)
    warn_once("cells are not isolated from this machine: `rlm-loop doctor` says what is missing and how to get it")
    return plain(python, options)


@functools.cache
def warn_once(told: str) -> None:
    """Warn, unless this process was told so before; no line of ours stands below it."""
    warnings.warn_explicit(told, RuntimeWarning, "rlm_loop", 1)


LAUNCHERS: dict[str, Any] = {"auto": strongest, "plain": plain, "hardened": Hardened(), "sandbox": Sandbox()}
"""The launchers that have a name; a container needs an image, so it has none."""

_STRENGTH = {"hardened": 1, "sandbox": 2, "container": 2}


def weaker(kind: str, than: str) -> bool:
    """Return True if one isolation keeps less from this machine than another; one that is not known keeps nothing."""
    return _STRENGTH.get(kind, 0) < _STRENGTH.get(than, 0)


def launcher_named(launcher: Launcher | str) -> Launcher:
    """The launcher of a name in `LAUNCHERS`, or the one given.  Raises `ValueError` for another name."""
    if not isinstance(launcher, str):
        return launcher
    if launcher not in LAUNCHERS:
        raise ValueError(f"no launcher is called {launcher!r}; there are: {', '.join(LAUNCHERS)}, Container('IMAGE')")
    return LAUNCHERS[launcher]
