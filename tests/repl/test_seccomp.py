"""The filter of system calls, run here by a small interpreter of its own code."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.repl.seccomp import NUMBERS, build

ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, KILL = 0x7FFF0000, 0x80000000
REFUSE = 0x00050000 | errno.EPERM
COLUMN = {"x86_64": 0, "aarch64": 1}
HEADERS = {
    "x86_64": ["/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"],
    "aarch64": ["/usr/include/asm-generic/unistd.h"],
}


def verdict(code: bytes, number: int, arguments: tuple[int, ...] = (), architecture: int = 0) -> int:
    """What the kernel would do with a call; raises where the code runs past its end."""
    data = struct.pack("=iIQ6Q", number, architecture, 0, *(arguments + (0,) * 6)[:6])
    program = list(struct.iter_unpack("=HBBI", code))
    at = value = 0
    while True:
        operation, yes, no, k = program[at]
        at += 1
        if operation == 0x20:
            value = struct.unpack_from("=I", data, k)[0]
        elif operation == 0x54:
            value &= k
        elif operation == 0x06:
            return k
        else:
            holds = {0x15: value == k, 0x35: value >= k, 0x45: value & k != 0}[operation]
            at += yes if holds else no


machines = pytest.mark.parametrize("machine", ARCHITECTURE)
LOOKED_INTO = {"clone", "clone3", "socket", "socketpair"}


@machines
@given(number=st.integers(0, 600), sockets=st.booleans())
def test_exactly_what_is_named_is_refused(machine: str, number: int, sockets: bool) -> None:
    column = COLUMN[machine]
    refused = {n[column] for name, n in NUMBERS.items() if n[column] and name not in LOOKED_INTO}
    if not sockets:
        refused.add(NUMBERS["socket"][column])
    result = verdict(build(machine, sockets=sockets), number, architecture=ARCHITECTURE[machine])
    if number == NUMBERS["clone3"][column]:
        assert result == 0x00050000 | errno.ENOSYS
    else:
        assert result == (REFUSE if number in refused else ALLOW)


@machines
@given(flags=st.integers(0, 2**32 - 1))
def test_a_process_may_be_made_but_no_namespace(machine: str, flags: int) -> None:
    clone = NUMBERS["clone"][COLUMN[machine]]
    result = verdict(build(machine, sockets=False), clone, (flags,), ARCHITECTURE[machine])
    assert result == (REFUSE if flags & 0x7E020000 else ALLOW)


@machines
@given(kind=st.sampled_from([1, 2, 5]), flags=st.sampled_from([0, 0o2000000, 0o4000, 0o2004000]))
def test_a_pair_of_sockets_is_no_way_out(machine: str, kind: int, flags: int) -> None:
    pair = NUMBERS["socketpair"][COLUMN[machine]]
    arguments = (1, kind | flags)
    closed = verdict(build(machine, sockets=False), pair, arguments, ARCHITECTURE[machine])
    assert closed == (REFUSE if kind == 2 else ALLOW)
    assert verdict(build(machine, sockets=True), pair, arguments, ARCHITECTURE[machine]) == ALLOW


@machines
@given(number=st.integers(0, 2**31 - 1), other=st.sampled_from([0x40000003, 0x40000028, 0]))
def test_calls_of_another_architecture_end_the_process(machine: str, number: int, other: int) -> None:
    assert verdict(build(machine, sockets=True), number, architecture=other) == KILL


def test_calls_with_x32_numbers_are_refused() -> None:
    assert verdict(build("x86_64", sockets=True), 0x40000000 | 41, architecture=ARCHITECTURE["x86_64"]) == REFUSE


def test_there_is_no_filter_for_an_unknown_machine() -> None:
    assert build("riscv64", sockets=False) == b""


@machines
def test_the_numbers_are_those_of_the_kernel(machine: str) -> None:
    path = next((Path(p) for p in HEADERS[machine] if Path(p).exists()), None)
    if path is None:
        pytest.skip("the kernel's headers are not here: apt-get install linux-libc-dev")
    found = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", path.read_text()))
    ours = {name: str(n[COLUMN[machine]]) for name, n in NUMBERS.items() if n[COLUMN[machine]]}
    assert ours == {name: found[name] for name in ours}
