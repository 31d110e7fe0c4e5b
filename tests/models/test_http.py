"""The client below the models: addresses, a proxy, and what goes wrong on the way."""

from __future__ import annotations

import json
import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path

import pytest

from rlm_loop.accounting import Scope
from rlm_loop.accounting.scope import call_scope
from rlm_loop.models.http import Http, Lost


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "address", ["localhost:1/v1", "ftp://host/v1", "http://", "", "http://[::1/v1", "http://me:secret@host/v1"]
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(ValueError) as caught:
        Http(address, headers={}, timeout=1)
    assert "secret" not in str(caught.value)


def test_a_call_that_nobody_waits_for_hangs_up(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of 60 seconds is never reached: the scope ends while the server is silent."""
    client = Http(silent, headers={}, timeout=60)
    scope = Scope()
    token = call_scope.set(scope)
    sent = threading.Event()
    send = HTTPConnection.send

    def told(connection: HTTPConnection, data: bytes) -> None:
        send(connection, data)
        sent.set()

    monkeypatch.setattr(HTTPConnection, "send", told)
    threading.Thread(target=lambda: (sent.wait(), scope.end("nobody waits"))).start()
    try:
        with pytest.raises(Lost):
            client.send("/x", "{}")
        with pytest.raises(Lost):  # and one that begins afterwards sends nothing
            client.send("/x", "{}")
    finally:
        call_scope.reset(token)
        sent.set()


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes a connection and says nothing."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        kept: list[socket.socket] = []
        taking = threading.Thread(target=lambda: kept.append(server.accept()[0]), daemon=True)
        taking.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        taking.join()
        for connection in kept:
            connection.close()


def test_silence_and_absence_are_told_apart(silent: str) -> None:
    with pytest.raises(Lost, match="timed out"):
        Http(silent, headers={}, timeout=0.05).send("/x", "{}")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        with pytest.raises(Lost, match="refused"):
            Http(f"http://127.0.0.1:{taken.getsockname()[1]}", headers={}, timeout=5).send("/x")


@dataclass
class Bare:
    """A server that reads one request from each connection, sends the next of its answers, and hangs up."""

    answers: list[bytes]
    read: list[bytes] = field(default_factory=list)
    closed: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    context: ssl.SSLContext | None = None

    @contextmanager
    def serving(self, host: str = "127.0.0.1") -> Generator[str]:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, 0), family=family) as server:
            thread = threading.Thread(target=self._serve, args=(server,), daemon=True)
            thread.start()
            shown = f"[{host}]" if ":" in host else host
            yield f"http{'s' if self.context else ''}://{shown}:{server.getsockname()[1]}"
        thread.join()

    def _serve(self, server: socket.socket) -> None:
        for answer in self.answers:
            connection = server.accept()[0]
            with connection, suppress(OSError):
                if self.context is not None:
                    connection = self.context.wrap_socket(connection, server_side=True)
                data = connection.recv(1 << 16)
                head, _, body = data.partition(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: (\d+)", head)
                while length and len(body) < int(length[1]) and (more := connection.recv(1 << 16)):
                    body += more
                self.read.append(data)
                connection.sendall(answer)
                connection.close()
            self.closed.release()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{"a\r\n5\r\n": 1}\r\n0\r\n\r\n', {"a": 1}),
        (b'HTTP/1.0 200 OK\r\n\r\n{"a": 1}', {"a": 1}),  # its end is the end of the connection
        (b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{}", None),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", None),
        (b"+OK POP3 ready\r\n", None),
        (b"", None),
    ],
)
def test_answers_of_every_form_and_broken_ones(answer: bytes, body: object) -> None:
    with Bare([answer]).serving() as address:
        client = Http(address, headers={}, timeout=5)
        if body is None:
            with pytest.raises(Lost) as caught:
                client.send("/x", "{}")
            assert str(caught.value)
        else:
            assert json.loads(client.send("/x", "{}").data) == body


def test_certificates_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is needed to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    files = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", *made.split(), *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with Bare([OK, OK], context=context).serving() as address:
        with pytest.raises(Lost, match="certificate"):
            Http(address, headers={}, timeout=5).send("/x", "{}")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert Http(address, headers={}, timeout=5).send("/x", "{}").status == 200


def test_a_proxy_of_the_environment_is_used_for_https(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = Bare([b"HTTP/1.1 403 Forbidden\r\n\r\n"])
    with proxy.serving() as address:
        monkeypatch.setenv("https_proxy", address)
        with pytest.raises(Lost, match="403"):
            Http("https://model.invalid/v1", headers={}, timeout=5).send("/x", "{}")
    assert proxy.read[0].startswith(b"CONNECT model.invalid:443 ")
