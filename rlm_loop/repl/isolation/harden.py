"""Gives up rights, then runs a script in the same process: `python harden.py RIGHTS SCRIPT ARGUMENTS...`.

RIGHTS is JSON, each part optional:

    user      [uid, gid] to become, for root
    keep_read keep the capability to read what the interpreter's folder holds, where others may not
    read, write   paths for landlock, which then refuses all others; no TCP, no signals to the outside
    hidden    folders within those of `read` that stay closed
    folder    the working folder, where the caller could not enter it
    filter    a seccomp filter, in hexadecimal (made by `seccomp.py`)

No new privileges, ever, and no capability but that one, also where nothing else is asked for.  What cannot be done
ends the process with one line: nothing runs with more rights than it was meant to have.  See landlock(7), seccomp(2),
prctl(2), capabilities(7).  Standard library only, Python 3.8 and newer, Linux only; imported by the host for
`landlock_abi`.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":  # the script's folder would let `import base` find our files
    sys.path[:] = [p for p in sys.path if p != __file__.rpartition("/")[0]]

import contextlib
import ctypes
import json
import marshal
import os
import stat
import struct
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every machine
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = (1 << i for i in range(4))
_MAKE_CHAR, _MAKE_BLOCK, _REFER, _TRUNCATE, _IOCTL = (1 << i for i in (6, 11, 13, 14, 15))
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_DAC_READ_SEARCH = 2  # the capability's number
_libc = ctypes.CDLL(None, use_errno=True)


def landlock_abi() -> int:
    """The version of landlock that this kernel has; 0 where it has none, or it is switched off."""
    try:
        return _call("syscall", _CREATE_RULESET, None, 0, 1) if sys.platform.startswith("linux") else 0
    except OSError:
        return 0


def confine(read: Sequence[str], write: Sequence[str], hidden: Sequence[str] = ()) -> None:
    """Refuse this process and its children every file that is not below one of these paths.  For good.

    `write` includes reading, creating and removing.  Of what lies within `hidden` no more is told than names of files,
    also where a path of `read` is around it.  From ABI 4 (Linux 6.7) TCP is refused too, from ABI 6 (6.12) signals and
    abstract sockets to processes outside.  A path that is not there is left out.  Needs no new privileges.
    """
    abi = landlock_abi()
    rights = (1 << 13) - 1
    rights |= (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0) | (_IOCTL if abi >= 5 else 0)
    handled = struct.pack("=QQQ", rights, 3, 3)[: 8 if abi < 4 else 16 if abi < 6 else 24]
    ruleset = _call("syscall", _CREATE_RULESET, handled, len(handled), 0)
    rules = [rule for path in read for rule in _around(path, hidden)]
    for path, allowed in [*rules, *((path, rights & ~(_MAKE_CHAR | _MAKE_BLOCK)) for path in write)]:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        allowed &= rights if stat.S_ISDIR(os.fstat(fd).st_mode) else rights & _OF_FILES
        _call("syscall", _ADD_RULE, ruleset, 1, struct.pack("=Qi", allowed, fd), 0)
        if not path.startswith("/proc/"):  # the kernel forgets a folder of /proc that nobody holds open
            os.close(fd)
    _call("syscall", _RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _around(path: str, hidden: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Paths and their rights that together are all of a path but what is hidden.

    Landlock has no rule that takes away: the folders around one that is hidden may be listed, and what lies beside it
    read.  Links are left out, since a rule for one opens where it leads to.
    """
    if path in hidden:
        return
    if not any(h.startswith(path + "/") for h in hidden):
        yield path, _READING
        return
    yield path, _READ_DIR
    inside: list[str] = []
    with contextlib.suppress(OSError):
        inside = [entry.path for entry in os.scandir(path) if not entry.is_symlink()]
    for found in inside:
        yield from _around(found, hidden)


def become(user: Sequence[int] | None, keep_read: bool) -> None:
    """Change from root to a user (or stay who we are) and give up all capabilities, all but one with `keep_read`."""
    with contextlib.suppress(OSError):  # no such capability, or not allowed, and then we have none to give up
        for capability in range(64):
            if capability != _DAC_READ_SEARCH or not keep_read:
                _prctl(24, capability)  # PR_CAPBSET_DROP
    if user is not None:
        _prctl(8, int(keep_read))  # PR_SET_KEEPCAPS
        os.setgroups([])
        os.setresgid(user[1], user[1], user[1])
        os.setresuid(user[0], user[0], user[0])
    kept = 1 << _DAC_READ_SEARCH if keep_read else 0
    _call("capset", struct.pack("=Ii", 0x20080522, 0), struct.pack("=6I", kept, kept, kept, 0, 0, 0))
    if keep_read:
        _prctl(47, 2, _DAC_READ_SEARCH)  # PR_CAP_AMBIENT_RAISE: programs that cells start need it as well
    _prctl(4, 1)  # PR_SET_DUMPABLE: a change of user hides /proc/self from ourselves


def install(code: bytes) -> None:
    """Put a seccomp filter in force.  Needs no new privileges."""
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
    _prctl(22, 2, program)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def _prctl(option: int, *arguments: int | bytes) -> None:
    _call("prctl", option, *[*arguments, 0, 0, 0][:4])


def _call(name: str, *arguments: int | bytes | None) -> int:
    """Call a function of the C library; raises `OSError` where it fails."""
    given = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result: int = getattr(_libc, name)(*given)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, name + ": " + os.strerror(number))
    return result


def give_up(rights: Mapping[str, Any]) -> None:
    """Keep only these rights (RIGHTS above), for good."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as f:  # the worker cannot, from inside
        f.write("500")
    become(rights.get("user"), rights.get("keep_read", False))
    if "folder" in rights:
        os.chdir(rights["folder"])
        os.environ["PWD"] = rights["folder"]
    _prctl(38, 1)  # PR_SET_NO_NEW_PRIVS: set-uid bits and file capabilities do nothing from here on
    if "write" in rights:
        confine(rights["read"], rights["write"], rights.get("hidden", ()))
    if rights.get("filter"):
        install(bytes.fromhex(rights["filter"]))


def main() -> None:
    rights, script = json.loads(sys.argv[1]), sys.argv[2]
    try:
        with open(script, "rb") as f:  # which may be closed to who we become
            data = f.read()
        code = marshal.loads(data[16:]) if script.endswith(".pyc") else compile(data, script, "exec")
        give_up(rights)
    except Exception as error:
        sys.exit(f"the REPL was not isolated, so it was not started ({error})")
    sys.argv[:] = sys.argv[2:]
    module = types.ModuleType("__main__")
    module.__file__ = script
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


if __name__ == "__main__":
    main()
