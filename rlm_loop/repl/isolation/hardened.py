"""Cells in a process that has given up its rights, by landlock and seccomp: no package, no root, no start-up cost.

It closes files, the network and other processes; the kernel and its process table are shared with the host.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_loop.repl.base import ReplError
from rlm_loop.repl.host.launch import WORKER, Launch, folders, isolated_environment, script
from rlm_loop.repl.isolation import seccomp
from rlm_loop.repl.isolation.harden import landlock_abi
from rlm_loop.repl.isolation.ordinary_user import RootFolder, cell_user, made_up, may_read
from rlm_loop.repl.isolation.readable import HARDEN, SETTINGS, SYSTEM, readable
from rlm_loop.repl.worker import tasks_of_user

# What counting processors and measuring memory reads.  /proc/self is the REPL.
_KERNEL = (
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/loadavg",
    "/proc/version",
    "/proc/filesystems",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/fs/cgroup/cpu.max",
    "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
    "/sys/fs/cgroup/cpu/cpu.cfs_period_us",
)
_DEVICES = ("/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


@dataclass(frozen=True)
class Confinement:
    """A confinement of a process by `harden.py`: the worker's `options` (JSON), environment, `rights` left to it."""

    options: str
    env: Mapping[str, str]
    rights: Mapping[str, Any]
    note: str


@dataclass(frozen=True)
class Hardened:
    """A launcher: the worker under landlock and seccomp, with what this kernel has of them.

    Cells read the system, the interpreter and the folders in `read`; they write to the working folder and to a
    temporary folder of their own.  Where the host is root they run as an ordinary user, if the working folder allows.
    """

    read: tuple[str | Path, ...] = ()
    kind = "hardened"

    def problem(self, python: str) -> str:
        """Return why this launcher does not work here, in one line; an empty string where it does."""
        del python
        if not sys.platform.startswith("linux"):
            return "landlock and seccomp are parts of Linux"
        if landlock_abi() < 1:
            return "this kernel has no landlock (it came with Linux 5.13), or it is not in its lsm= boot parameter"
        return ""

    def __call__(self, python: str, options: str) -> Launch:
        """Raises `ReplError` where the kernel has no landlock: then nothing is started."""
        given = self.confinement(python, options)
        scripts = [script(source, python, options) for source in (HARDEN, WORKER)]
        argv = (python, "-u", scripts[0], json.dumps(given.rights), scripts[1], given.options)
        return Launch(argv, given.env, self.kind, given.note)

    def confinement(self, python: str, options: str) -> Confinement:
        """Return the confinement of a process with these options; it may read the folders of the options."""
        if problem := self.problem(python):
            raise ReplError(f'cannot isolate the REPL: {problem}; use another launcher, or launcher="plain" for none')
        cwd, home = folders(options)
        temporary = home / "tmp"
        temporary.mkdir(exist_ok=True)
        environment = isolated_environment(str(temporary))
        needed = readable(python, environment, self.read)
        paths = [*needed.paths, str(WORKER), str(HARDEN)]
        user, keep_read, note = _user(cwd, home, paths, seccomp.available())
        code = seccomp.for_this_machine(shares="machine" if user is not None and made_up(user) else "files")
        rights = {
            "user": user,
            "keep_read": keep_read,
            "read": [*SYSTEM, *SETTINGS, *paths, *_KERNEL, *_DEVICES],
            "hidden": needed.hidden,
            "write": [str(cwd), str(temporary), "/dev/null"],
            "remove": [str(home)],  # the worker's last act when the host was killed; writing there is the host's
            "filter": code.hex(),
        }
        return Confinement(_with_others(options, user), environment, rights, note)


def _user(cwd: Path, home: Path, paths: list[str], filtered: bool) -> tuple[tuple[int, int] | None, bool, str]:
    """Return the cells' user (`None`: ours), True if it needs to read files of root's, and a note about that."""
    try:
        user = cell_user(cwd, home)
    except RootFolder as e:
        return None, False, f"cells run as root without its capabilities: {e}"
    if user is None or may_read([*paths, str(home.parent)]):
        return user, False, ""
    if filtered and _may_read_everything():  # without the filter, handles would open files past landlock
        return user, True, "cells may read the interpreter's folder, which is closed to ordinary users"
    return None, False, "cells run as root without its capabilities: the interpreter is closed to ordinary users"


def _may_read_everything() -> bool:
    """Return True if this process has CAP_DAC_READ_SEARCH, and so can leave it to the worker."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) & 1 << 2)
    return False


def _with_others(options: str, user: tuple[int, int] | None) -> str:
    """Tell the worker how many processes its user has, which it cannot see for itself."""
    given = json.loads(options)
    if "processes" in given.get("limits", {}):
        same = user is None or user[0] == os.getuid()
        given["limits"] = {**given["limits"], "others": tasks_of_user() + 1 if same else 2}
    return json.dumps(given)
