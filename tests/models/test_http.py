"""The client below the models: addresses, a proxy, and what goes wrong on the way."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from loopback import Answering, Loopback
from upstream import Answer, until_gone, upstream

from rlm_loop.models.http import Http, Lost


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def test_silence_is_told() -> None:
    with upstream(Answer([until_gone])) as server, pytest.raises(Lost, match="timed out"):
        Http(server.url, headers={}, timeout=0.05).send("/x", "{}")


def sending(answer: bytes, asked: list[str] | None = None, context: ssl.SSLContext | None = None) -> Loopback:
    """A server that reads a request, sends these bytes, and hangs up."""

    class Bare(Answering):
        def do_POST(self) -> None:
            self.body()
            if asked is not None:
                asked.append(self.requestline)
            self.wfile.write(answer)
            self.close_connection = True

        do_CONNECT = do_POST

    class Server(Loopback):
        def get_request(self) -> Any:
            line, address = super().get_request()
            return line if context is None else context.wrap_socket(line, server_side=True), address

    return Server(Bare)


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
    with sending(answer) as server:
        client = Http(server.address, headers={}, timeout=5)
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
    with sending(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", context=context) as server:
        address = server.address.replace("http", "https")
        with pytest.raises(Lost, match="certificate"):
            Http(address, headers={}, timeout=5).send("/x", "{}")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert Http(address, headers={}, timeout=5).send("/x", "{}").status == 200


def test_a_proxy_of_the_environment_is_used_for_https(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    with sending(b"HTTP/1.1 403 Forbidden\r\n\r\n", asked) as proxy:
        monkeypatch.setenv("https_proxy", proxy.address)
        with pytest.raises(Lost, match="403"):
            Http("https://model.invalid/v1", headers={}, timeout=5).send("/x", "{}")
    assert asked[0].startswith("CONNECT model.invalid:443 ")
