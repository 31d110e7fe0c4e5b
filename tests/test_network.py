"""The guard of conftest.py itself: a test that would leave this machine fails, one that stays works."""

from __future__ import annotations

import socket
import threading

import pytest


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1"])  # documentation addresses: nobody is there
def test_connecting_elsewhere_is_refused(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as sock:
        with pytest.raises(RuntimeError, match="stay on this machine"):
            sock.connect((host, 80))
        with pytest.raises(RuntimeError, match="stay on this machine"):
            sock.connect_ex((host, 80))


def test_looking_up_a_name_is_refused() -> None:
    with pytest.raises(RuntimeError, match="stay on this machine"):
        socket.getaddrinfo("example.invalid", 443)
    with pytest.raises(RuntimeError, match="stay on this machine"):
        socket.create_connection(("example.invalid", 443))


def test_sending_datagrams_elsewhere_is_refused() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock,
        pytest.raises(RuntimeError, match="stay on this machine"),
    ):
        sock.sendto(b"x", ("192.0.2.1", 53))


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
