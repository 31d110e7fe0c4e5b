"""The filter of system calls, run here by a small interpreter of its own code."""

from __future__ import annotations

import errno
import re
import socket
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop.repl.isolation.seccomp import CALLS, ONESELF, build

NUMBERS = {name: numbers for listed in CALLS.values() for name, numbers in listed.items()}
ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
COLUMN = {"x86_64": 0, "aarch64": 1}
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
REFUSE, NO_FAMILY = ERROR | errno.EPERM, ERROR | errno.EAFNOSUPPORT
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
        if operation == 0x06:
            return k
        if operation in (0x20, 0x54):
            value = struct.unpack_from("=I", data, k)[0] if operation == 0x20 else value & k
        else:
            holds = {0x15: value == k, 0x35: value >= k, 0x45: value & k != 0}[operation]
            at += yes if holds else no


machines = pytest.mark.parametrize("machine", ARCHITECTURE)


def asked(machine: str, alone: bool, name: str, *arguments: int) -> int:
    number = NUMBERS[name][COLUMN[machine]]
    return verdict(build(machine, alone=alone), number, arguments, ARCHITECTURE[machine])


@machines
@given(number=st.integers(0, 600), alone=st.booleans())
def test_exactly_what_is_named_is_refused(machine: str, number: int, alone: bool) -> None:
    """Called with zeros alone."""
    result = verdict(build(machine, alone=alone), number, architecture=ARCHITECTURE[machine])
    names = {name for name, n in NUMBERS.items() if n[COLUMN[machine]] == number != 0}
    refused = {*CALLS["refused"]} | (set() if alone else {*CALLS["shared"], *CALLS["owned"], "socket", "ioprio_set"})
    if "clone3" in names:
        assert result == ERROR | errno.ENOSYS
    elif "socket" in names and alone:
        assert result == NO_FAMILY
    elif names & {*CALLS["without_effect"]} and not alone:
        assert result == ERROR, "no error, and nothing is done"
    else:
        assert result == (REFUSE if names & refused else ALLOW)


@machines
@given(flags=st.integers(0, 2**32 - 1), alone=st.booleans())
def test_a_process_may_be_made_but_no_namespace(machine: str, flags: int, alone: bool) -> None:
    assert asked(machine, alone, "clone", flags) == (REFUSE if flags & 0x7E020000 else ALLOW)


@machines
@given(kind=st.sampled_from([1, 2, 3, 5]), flags=st.sampled_from([0, 0o2000000, 0o4000, 0o2004000]))
def test_a_pair_of_sockets_is_no_way_out(machine: str, kind: int, flags: int) -> None:
    assert asked(machine, False, "socketpair", 1, kind | flags) == (REFUSE if kind in (2, 3) else ALLOW)
    assert asked(machine, True, "socketpair", 1, kind | flags) == ALLOW


@machines
@given(family=st.integers(0, 60))
def test_a_network_of_its_own_has_only_families_that_are_in_it(machine: str, family: int) -> None:
    """40 is AF_VSOCK, which leads from a virtual machine to its host; 38 AF_ALG; neither has namespaces."""
    allowed = family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, 16)
    assert asked(machine, True, "socket", family, 1) == (ALLOW if allowed else NO_FAMILY)


@machines
@given(
    name=st.sampled_from(sorted(ONESELF)),
    first=st.sampled_from([0, 1, 2, 2**32 - 1]) | st.integers(0, 2**32 - 1),
    second=st.sampled_from([0, 1]) | st.integers(0, 2**32 - 1),
    alone=st.booleans(),
)
def test_other_processes_keep_their_limits_and_priorities(
    machine: str, name: str, first: int, second: int, alone: bool
) -> None:
    own = ONESELF[name]
    allowed = alone or [first, second][: len(own)] == own
    assert asked(machine, alone, name, first, second) == (ALLOW if allowed else REFUSE)


@machines
@given(pid=st.sampled_from([0, 1, 77, 2**32 - 1]), number=st.integers(0, 64))
def test_no_signal_goes_to_everybody(machine: str, pid: int, number: int) -> None:
    assert asked(machine, False, "kill", pid, number) == (REFUSE if pid == 2**32 - 1 else ALLOW)
    assert asked(machine, True, "kill", pid, number) == ALLOW


@machines
@given(number=st.integers(0, 2**31 - 1), other=st.sampled_from([0x40000003, 0x40000028, 0]))
def test_calls_of_another_architecture_end_the_process(machine: str, number: int, other: int) -> None:
    assert verdict(build(machine, alone=True), number, architecture=other) == KILL


def test_calls_with_x32_numbers_are_refused_and_an_unknown_machine_has_no_filter() -> None:
    assert verdict(build("x86_64", alone=True), 0x40000000 | 41, architecture=ARCHITECTURE["x86_64"]) == REFUSE
    assert build("riscv64", alone=False) == b""


@machines
def test_the_numbers_are_those_of_the_kernel(machine: str) -> None:
    path = next((Path(p) for p in HEADERS[machine] if Path(p).exists()), None)
    if path is None:
        pytest.skip("the kernel's headers are not here: apt-get install linux-libc-dev")
    found = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", path.read_text()))
    ours = {name: str(n[COLUMN[machine]]) for name, n in NUMBERS.items() if n[COLUMN[machine]]}
    newer = {"fchmodat2": "452", "setxattrat": "463", "removexattrat": "466", "open_tree_attr": "467"}
    newer["file_setattr"] = "469"  # newer than the headers of some systems
    assert ours == {name: (newer | found)[name] for name in ours}
