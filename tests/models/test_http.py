"""The client below the models: addresses, a proxy, and what goes wrong on the way."""

from __future__ import annotations

import json
import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from upstream import Answer, Got, upstream

from rlm_loop.accounting import Scope
from rlm_loop.accounting.scope import call_scope
from rlm_loop.models.http import Http, Lost


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def test_a_call_that_nobody_waits_for_hangs_up_and_no_other_begins() -> None:
    """The server is silent until then, and the limit of 60 seconds is never reached."""
    scope = Scope()

    def answer(_: Got) -> Answer:
        scope.end("nobody waits")
        return Answer()

    token = call_scope.set(scope)
    try:
        with upstream(answer) as server:
            for _ in range(2):
                with pytest.raises(Lost):
                    Http(server.url, headers={}, timeout=60).send("/x", "{}")
    finally:
        call_scope.reset(token)
    assert len(server.got) == 1


def test_silence_is_told() -> None:
    held = threading.Event()

    def answer(_: Got) -> Answer:
        held.wait(60)
        return Answer()

    with upstream(answer) as server, pytest.raises(Lost, match="timed out"):
        Http(server.url, headers={}, timeout=0.05).send("/x", "{}")
    held.set()


@dataclass
class Bare:
    """A server that reads one request from each connection, sends the next of its answers, and hangs up."""

    answers: list[bytes]
    read: list[bytes] = field(default_factory=list)
    context: ssl.SSLContext | None = None

    @contextmanager
    def serving(self) -> Generator[str]:
        with socket.create_server(("127.0.0.1", 0)) as server:
            thread = threading.Thread(target=self._serve, args=(server,), daemon=True)
            thread.start()
            yield f"http{'s' if self.context else ''}://127.0.0.1:{server.getsockname()[1]}"
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
            with pytest.raises(Lost, match=r"\w"):
                client.send("/x", "{}")
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
