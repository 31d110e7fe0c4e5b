"""The system calls that isolated cells may not make, as a seccomp filter (seccomp(2), in classic BPF).

The host builds the bytes, `harden.py` installs them.  What is refused fails with EPERM, so that a program can go on;
`clone3` fails with ENOSYS, so that the C library uses `clone`, whose flags a filter can see.
"""

from __future__ import annotations

import errno
import functools
import platform
import struct
import sys

# What no analysis needs, and kernel exploits and escapes begin with: other processes' memory, mounts, namespaces,
# keys, BPF, io_uring, modules, clocks, devices.  Numbers on x86_64 and on aarch64 (0: not there).
_REFUSED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "move_pages": (279, 239),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "unshare": (272, 97),
    "setns": (308, 268),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "iopl": (172, 0),
    "ioperm": (173, 0),
    "modify_ldt": (154, 0),
}
_LOOKED_INTO = {"clone": (56, 220), "clone3": (435, 435), "socket": (41, 198), "socketpair": (53, 199)}
NUMBERS = {**_REFUSED, **_LOOKED_INTO}
"""Every system call that a filter mentions; a test compares the numbers with the kernel's headers."""

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column in the tables, AUDIT_ARCH_*
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000
_NOT_THERE = 0x00050000 | errno.ENOSYS
_NEW_NAMESPACE = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24  # offsets in struct seccomp_data; low words of arguments


@functools.lru_cache(maxsize=4)
def build(machine: str, *, sockets: bool) -> bytes:
    """The filter for a machine (`platform.machine()`); empty where there is none for it.

    Without `sockets` no socket can be opened but a connected pair, and that not for datagrams, which could be sent
    elsewhere: no network of any family, and none of the unix sockets of services, which landlock does not cover.
    """
    if machine not in _MACHINES:
        return b""
    column, architecture = _MACHINES[machine]
    code = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),  # 32-bit calls have other numbers
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        code += [(_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _REFUSE)]  # x32 calls too
    for numbers in _REFUSED.values():
        if numbers[column]:
            code += [(_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, _REFUSE)]
    number = {name: numbers[column] for name, numbers in _LOOKED_INTO.items()}
    code += [
        (_EQUAL, 0, 1, number["clone3"]),
        (_RETURN, 0, 0, _NOT_THERE),
        (_EQUAL, 0, 4, number["clone"]),
        (_LOAD, 0, 0, _FIRST),
        (_ANY_BIT, 0, 1, _NEW_NAMESPACE),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    if not sockets:
        code += [
            (_EQUAL, 0, 1, number["socket"]),
            (_RETURN, 0, 0, _REFUSE),
            (_EQUAL, 0, 5, number["socketpair"]),
            (_LOAD, 0, 0, _SECOND),
            (_AND, 0, 0, 0xF),  # the type, without SOCK_CLOEXEC and SOCK_NONBLOCK
            (_EQUAL, 0, 1, 2),  # SOCK_DGRAM
            (_RETURN, 0, 0, _REFUSE),
            (_RETURN, 0, 0, _ALLOW),
        ]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def for_this_machine(*, sockets: bool) -> bytes:
    """`build` for where we run; empty where the kernel has no filters, or a 32-bit Python runs on a 64-bit one."""
    if not available():
        return b""
    return build(platform.machine(), sockets=sockets)


def available() -> bool:
    """Whether this kernel takes filters and there is one for this machine."""
    if not sys.platform.startswith("linux") or sys.maxsize < 2**32 or platform.machine() not in _MACHINES:
        return False
    try:
        with open("/proc/self/status") as f:
            return any(line.startswith("Seccomp:") for line in f)
    except OSError:
        return False
