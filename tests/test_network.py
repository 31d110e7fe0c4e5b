"""The guard of conftest.py itself: a test that would leave this machine fails, one that stays works."""

from __future__ import annotations

import socket
import threading

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


def test_loopback_and_unix_sockets_work() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=lambda: server.accept()[0].close())
        thread.start()
        socket.create_connection(("localhost", server.getsockname()[1])).close()
        thread.join()
    left, right = socket.socketpair()
    with left, right:
        left.sendall(b"x")
        assert right.recv(1) == b"x"
