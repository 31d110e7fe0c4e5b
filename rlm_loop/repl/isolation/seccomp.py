"""The system calls that isolated cells may not make, as a seccomp filter (seccomp(2), in classic BPF).

The host builds the bytes, `harden.py` installs them.  What is refused fails with EPERM, so that a program can go on;
`clone3` fails with ENOSYS, so that the C library uses `clone`, whose flags a filter can see.
"""

from __future__ import annotations

import errno
import functools
import json
import platform
import struct
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

Shares = Literal["nothing", "machine", "files"]
"""Resources that a session shares with the user: none (it has namespaces of its own), the machine's processes and
network, or these and the ownership of files."""

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column in the tables, AUDIT_ARCH_*
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_REFUSE, _NOT_THERE, _NO_FAMILY = _FAIL | errno.EPERM, _FAIL | errno.ENOSYS, _FAIL | errno.EAFNOSUPPORT
_DONE = _FAIL  # a failure without an error: the call gives 0
_NEW_NAMESPACE = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_FAMILIES = (1, 2, 10, 16)  # unix, IPv4, IPv6, netlink: the others have no namespaces, as AF_VSOCK, or are not needed
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24  # offsets in struct seccomp_data; low words of arguments

_TABLE: dict[str, Any] = json.loads(Path(__file__).with_name("seccomp_calls.json").read_text("utf-8"))
ONESELF: dict[str, list[int]] = _TABLE["of_others"]["oneself"]
"""The leading arguments with which a call of the kind `of_others` is about the caller itself."""
CALLS: dict[str, dict[str, list[int]]] = {kind: _TABLE[kind]["calls"] for kind in _TABLE if kind != "about"}
"""System calls by what becomes of them, with their numbers; a test compares these with the kernel's headers."""

Code = list[tuple[int, int, int, int]]


@functools.lru_cache(maxsize=8)
def build(machine: str, *, shares: Shares) -> bytes:
    """The filter for a machine (`platform.machine()`); empty where there is none for it.

    A session that shares the machine opens no socket but a connected pair, and that not for datagrams, which could be
    sent elsewhere: no network of any family, and none of the unix sockets of services, which landlock does not cover.
    """
    if machine not in _MACHINES:
        return b""
    column, architecture = _MACHINES[machine]
    number = {name: numbers[column] for listed in CALLS.values() for name, numbers in listed.items()}
    code: Code = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),  # 32-bit calls have other numbers
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        code += [(_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _REFUSE)]  # x32 calls too
    code += _always(map(number.__getitem__, CALLS["refused"]), _REFUSE)
    code += _always([number["clone3"]], _NOT_THERE)
    code += _where(number["clone"], [(_LOAD, 0, 0, _FIRST), (_ANY_BIT, 0, 1, _NEW_NAMESPACE)], _REFUSE)
    if shares == "nothing":
        last = len(_FAMILIES) - 1  # each jumps past those behind it, and past the refusal
        families = [(_EQUAL, last - n + 1, 0, family) for n, family in enumerate(_FAMILIES)]
        code += _where(number["socket"], [(_LOAD, 0, 0, _FIRST), *families], _NO_FAMILY)
    else:
        code += _always(map(number.__getitem__, CALLS["shared"]), _REFUSE)
        for name, own in ONESELF.items():
            code += _unless(number[name], own)
        everybody = [(_LOAD, 0, 0, _FIRST), (_EQUAL, 0, 1, 0xFFFFFFFF)]
        code += _where(number["kill"], everybody, _REFUSE)
        code += _always([number["socket"]], _REFUSE)
        kind: Code = [(_LOAD, 0, 0, _SECOND), (_AND, 0, 0, 0xF), (_EQUAL, 0, 1, 2)]  # SOCK_DGRAM, whatever its flags
        code += _where(number["socketpair"], kind, _REFUSE)
    if shares == "files":
        code += _always(map(number.__getitem__, CALLS["owned"]), _REFUSE)
        code += _always(map(number.__getitem__, CALLS["without_effect"]), _DONE)
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _always(numbers: Iterable[int], result: int) -> Code:
    """These calls, those that the machine has, come to this."""
    return [part for n in numbers if n for part in ((_EQUAL, 0, 1, n), (_RETURN, 0, 0, result))]


def _where(number: int, test: Code, result: int) -> Code:
    """A call comes to this where the test goes on to its end, and is allowed where it jumps over what follows."""
    return [(_EQUAL, 0, len(test) + 2, number), *test, (_RETURN, 0, 0, result), (_RETURN, 0, 0, _ALLOW)]


def _unless(number: int, arguments: Sequence[int]) -> Code:
    """A call is refused unless its first arguments are these."""
    tests: Code = []
    left = 2 * len(arguments)
    for place, value in enumerate(arguments):
        left -= 2
        last = not left
        tests += [(_LOAD, 0, 0, _FIRST + 8 * place), (_EQUAL, 1 if last else 0, 0 if last else left, value)]
    return _where(number, tests, _REFUSE)


def for_this_machine(*, shares: Shares) -> bytes:
    """`build` for where we run; empty where the kernel has no filters, or a 32-bit Python runs on a 64-bit one."""
    if not available():
        return b""
    return build(platform.machine(), shares=shares)


def available() -> bool:
    """Return True if this kernel takes filters and there is one for this machine."""
    if not sys.platform.startswith("linux") or sys.maxsize < 2**32 or platform.machine() not in _MACHINES:
        return False
    try:
        with open("/proc/self/status") as f:
            return any(line.startswith("Seccomp:") for line in f)
    except OSError:
        return False
