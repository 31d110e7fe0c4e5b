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
from pathlib import Path
from typing import Any

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column in the tables, AUDIT_ARCH_*
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_REFUSE, _NOT_THERE, _NO_FAMILY = _FAIL | errno.EPERM, _FAIL | errno.ENOSYS, _FAIL | errno.EAFNOSUPPORT
_DONE = _FAIL  # a failure without an error: the call gives 0
_NEW_NAMESPACE = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_FAMILIES = (1, 2, 10, 16)  # unix, IPv4, IPv6, netlink: the others have no namespaces, as AF_VSOCK, or are not needed
_DATAGRAMS = 2  # a bit of SOCK_DGRAM and SOCK_RAW, and of no flag and no other kind of unix socket
_NUMBER, _ARCHITECTURE, _FIRST = 0, 4, 16  # offsets in struct seccomp_data; of the first argument the low word

_TABLE: dict[str, Any] = json.loads(Path(__file__).with_name("seccomp_calls.json").read_text("utf-8"))
ONESELF: dict[str, list[int]] = _TABLE["of_others"]["oneself"]
"""The leading arguments with which a call of the kind `of_others` is about the caller itself."""
CALLS: dict[str, dict[str, list[int]]] = {kind: _TABLE[kind]["calls"] for kind in _TABLE if kind != "about"}
"""System calls by what becomes of them, with their numbers; a test compares these with the kernel's headers."""

Code = list[tuple[int, int, int, int]]


@functools.lru_cache(maxsize=8)
def build(machine: str, *, alone: bool) -> bytes:
    """The filter for a machine (`platform.machine()`); empty where there is none for it.

    A session that is not `alone` (it has no namespaces of its own, and may own the user's files) opens no socket but a
    connected pair, and that not for datagrams, which could be sent elsewhere: no network of any family, and none of
    the unix sockets of services, which landlock does not cover.
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
    always = {_REFUSE: [*CALLS["refused"]], _NOT_THERE: ["clone3"]}
    if not alone:
        always[_REFUSE] += [*CALLS["shared"], *CALLS["owned"], "socket"]
        always[_DONE] = [*CALLS["without_effect"]]
    for result, names in always.items():
        for name in filter(number.get, names):  # those that the machine has
            code += _rule(number[name], result)
    code += _rule(number["clone"], _REFUSE, (0, _ANY_BIT, _NEW_NAMESPACE))
    if alone:
        for family in _FAMILIES:
            code += _rule(number["socket"], _ALLOW, (0, _EQUAL, family))
        code += _rule(number["socket"], _NO_FAMILY)
    else:
        for name, own in ONESELF.items():
            code += _rule(number[name], _ALLOW, *((place, _EQUAL, value) for place, value in enumerate(own)))
            code += _rule(number[name], _REFUSE)
        code += _rule(number["kill"], _REFUSE, (0, _EQUAL, 0xFFFFFFFF))  # everybody
        code += _rule(number["socketpair"], _REFUSE, (1, _ANY_BIT, _DATAGRAMS))
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _rule(number: int, result: int, *tests: tuple[int, int, int]) -> Code:
    """A call comes to this result where all tests (argument, operation, value) hold; else the next rules decide."""
    body: Code = []
    for place, operation, value in reversed(tests):
        body = [(_LOAD, 0, 0, _FIRST + 8 * place), (operation, 0, len(body) + 1, value), *body]
    again: Code = [(_LOAD, 0, 0, _NUMBER)] if tests else []
    return [(_EQUAL, 0, len(body) + 1, number), *body, (_RETURN, 0, 0, result), *again]


def for_this_machine(*, alone: bool) -> bytes:
    """`build` for where we run; empty where the kernel has no filters, or a 32-bit Python runs on a 64-bit one."""
    return build(platform.machine(), alone=alone) if available() else b""


def available() -> bool:
    """Return True if this kernel takes filters and there is one for this machine."""
    if sys.maxsize < 2**32 or platform.machine() not in _MACHINES:
        return False
    try:
        return "\nSeccomp:" in Path("/proc/self/status").read_text()
    except OSError:
        return False
