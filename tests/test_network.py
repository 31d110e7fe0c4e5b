"""The guard of conftest.py itself: a test that would leave this machine fails."""

from __future__ import annotations

import socket

import pytest


def test_nothing_leaves_this_machine() -> None:
    there, six, name = ("192.0.2.1", 80), ("2001:db8::1", 80), ("example.invalid", 443)  # nobody is there
    with socket.socket() as tcp, socket.socket(socket.AF_INET6) as tcp6, socket.socket(type=socket.SOCK_DGRAM) as udp:
        for leave in (
            lambda: tcp.connect(there),
            lambda: tcp.connect_ex(there),
            lambda: tcp6.connect(six),
            lambda: tcp6.connect_ex(six),
            lambda: udp.sendto(b"x", there),
            lambda: socket.getaddrinfo(*name),
            lambda: socket.create_connection(name),
        ):
            with pytest.raises(RuntimeError, match="stay on this machine"):
                leave()
