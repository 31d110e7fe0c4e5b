"""Gives up rights, then runs a script in the same process: `python harden.py RIGHTS SCRIPT ARGUMENTS...`.

RIGHTS is JSON, each part optional:

    user      [uid, gid] to become, for root
    keep_read keep the capability to read what the interpreter's folder holds, where others may not
    read, write, remove   paths for landlock, which then refuses all others; no TCP, no signals to the outside
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

import ctypes
import functools
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
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE, _MAKE_CHAR = (1 << i for i in range(7))
_MAKE_BLOCK, _REFER, _TRUNCATE, _IOCTL = 1 << 11, 1 << 13, 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_DAC_READ_SEARCH = 2  # the capability's number


def landlock_abi() -> int:
    """The version of landlock that this kernel has; 0 where it has none, or it is switched off."""
    if not sys.platform.startswith("linux"):
        return 0
    try:
        return _create_ruleset(b"", 1)
    except (OSError, AttributeError):
        return 0


def confine(read: Sequence[str], write: Sequence[str], remove: Sequence[str], hidden: Sequence[str] = ()) -> None:
    """Refuse this process and its children every file that is not below one of these paths.  For good.

    `write` includes reading, creating and removing, `remove` is reading and removing only.  Of what lies within
    `hidden` no more is told than names of files, also where a path of `read` is around it.  From ABI 4 (Linux 6.7)
    TCP is refused too, from ABI 6 (6.12) signals and abstract sockets to processes outside.  A path that is not there
    is left out.  `no_new_privileges` has to be called first.
    """
    abi = landlock_abi()
    rights = (1 << 13) - 1
    rights |= (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0) | (_IOCTL if abi >= 5 else 0)
    handled = struct.pack("=QQQ", rights, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    handled = handled[: 8 if abi < 4 else 16 if abi < 6 else 24]
    ruleset = _create_ruleset(handled, 0)
    add_rule = _system_call(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)
    reading = _EXECUTE | _READ_FILE | _READ_DIR
    removing = _READ_FILE | _READ_DIR | _REMOVE_DIR | _REMOVE_FILE
    writing = rights & ~(_MAKE_CHAR | _MAKE_BLOCK)
    try:
        reads = [rule for path in read for rule in _around(path, hidden, reading)]
        for rules in (reads, ((p, removing) for p in remove), ((p, writing) for p in write)):
            for path, allowed in rules:
                try:
                    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
                except OSError:
                    continue
                folder = stat.S_ISDIR(os.fstat(fd).st_mode)
                own = allowed & rights if folder else allowed & rights & _OF_FILES
                rule = struct.pack("=Qi", own, fd)
                _checked(add_rule(_ADD_RULE, ruleset, 1, rule, 0))
                if not path.startswith("/proc/"):  # the kernel forgets a folder of /proc that nobody holds open
                    os.close(fd)
        _checked(_system_call(ctypes.c_int, ctypes.c_uint32)(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _around(path: str, hidden: Sequence[str], reading: int) -> Iterator[tuple[str, int]]:
    """Paths and their rights that together are all of a path but what is hidden.

    Landlock has no rule that takes away: the folders around one that is hidden may be listed, and what lies beside it
    read.  Links are left out, since a rule for one opens where it leads to.
    """
    if path in hidden:
        return
    if not any(h.startswith(path + "/") for h in hidden):
        yield path, reading
        return
    yield path, _READ_DIR
    try:
        inside = [entry.path for entry in os.scandir(path) if not entry.is_symlink()]
    except OSError:
        return
    for found in inside:
        yield from _around(found, hidden, reading)


def _create_ruleset(attributes: bytes, flags: int) -> int:
    call = _system_call(ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint32)
    return _checked(call(_CREATE_RULESET, attributes or None, len(attributes), flags))


def _system_call(*arguments: Any) -> Any:
    """`syscall` for a number and arguments of these types: said once, a call costs a tenth of what it does else."""
    call = _libc()["syscall"]
    call.argtypes = (ctypes.c_long, *arguments)
    return call


def no_new_privileges() -> None:
    """No program gives more rights than its caller has: set-uid bits and file capabilities do nothing from here on."""
    _prctl(38, 1)  # PR_SET_NO_NEW_PRIVS


def install(code: bytes) -> None:
    """Put a seccomp filter in force.  `no_new_privileges` has to be called first."""
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
    holder = ctypes.create_string_buffer(program, len(program))
    _prctl(22, 2, ctypes.addressof(holder))  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def become(user: Sequence[int] | None, keep_read: bool) -> None:
    """Change from root to a user (or stay who we are) and give up all capabilities, all but one with `keep_read`."""
    for capability in range(64):
        if capability != _DAC_READ_SEARCH or not keep_read:
            try:
                _prctl(24, capability)  # PR_CAPBSET_DROP
            except OSError:
                break  # no such capability, or not allowed, and then we have none to give up
    if user is not None:
        if keep_read:
            _prctl(8, 1)  # PR_SET_KEEPCAPS
        os.setgroups([])
        os.setresgid(user[1], user[1], user[1])
        os.setresuid(user[0], user[0], user[0])
    kept = 1 << _DAC_READ_SEARCH if keep_read else 0
    header = struct.pack("=Ii", 0x20080522, 0)
    _checked(_libc().capset(header, struct.pack("=6I", kept, kept, kept, 0, 0, 0)))
    if keep_read:
        _prctl(47, 2, _DAC_READ_SEARCH)  # PR_CAP_AMBIENT_RAISE: programs that cells start need it as well
    _prctl(4, 1)  # PR_SET_DUMPABLE: a change of user hides /proc/self from ourselves


def _prctl(option: int, *arguments: int) -> None:
    padded = [*arguments, 0, 0, 0, 0][:4]
    _checked(_prctl_of_libc()(option, *padded))


@functools.lru_cache(maxsize=1)
def _prctl_of_libc() -> Any:
    call = _libc()["prctl"]
    call.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)
    return call


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


@functools.lru_cache(maxsize=1)
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def give_up(rights: Mapping[str, Any]) -> None:
    """Keep only these rights (RIGHTS above), for good; raises `NotIsolated` where that cannot be done."""
    step = "giving up the user's rights"
    try:
        try:
            with open("/proc/self/oom_score_adj", "w") as f:  # the worker cannot, from inside
                f.write("500")
        except OSError:
            pass
        become(rights.get("user"), rights.get("keep_read", False))
        if "folder" in rights:
            step = "entering the working folder"
            os.chdir(rights["folder"])
            os.environ["PWD"] = rights["folder"]
        step = "no_new_privs"
        no_new_privileges()
        if "write" in rights:
            step = "landlock"
            confine(rights["read"], rights["write"], rights["remove"], rights.get("hidden", ()))
        if rights.get("filter"):
            step = "seccomp"
            install(bytes.fromhex(rights["filter"]))
    except Exception as error:
        raise NotIsolated(f"the REPL was not isolated, so it was not started ({step}: {error})") from error


class NotIsolated(Exception):
    """Rights could not be given up; the text says which, and why."""


def _code(script: str) -> types.CodeType:
    """A script's code: a `.pyc` file of this Python, or source."""
    with open(script, "rb") as f:
        data = f.read()
    return marshal.loads(data[16:]) if script.endswith(".pyc") else compile(data, script, "exec")


def main() -> None:
    rights, script = json.loads(sys.argv[1]), sys.argv[2]
    try:
        code = _code(script)  # which may be closed to who we become
        give_up(rights)
    except (NotIsolated, OSError) as error:
        sys.exit(str(error))
    sys.argv[:] = sys.argv[2:]
    module = types.ModuleType("__main__")
    module.__file__ = script
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


if __name__ == "__main__":
    main()
