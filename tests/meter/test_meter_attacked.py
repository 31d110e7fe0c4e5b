"""The meter before a client that means it ill: it answers or hangs up, holds nothing, and serves the next one."""

from __future__ import annotations

import io
import logging
import os
import socket
from contextlib import suppress
from email.message import Message
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wires import ask, user

from rlm_loop.meter import meter as the_meter
from rlm_loop.meter import metered_endpoint
from rlm_loop.meter.body import body_of
from rlm_loop.meter.request import Refused
from rlm_loop.models import ScriptedModel

POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


def sent(url: str, raw: bytes, *, half: bool = True) -> bytes:
    """What comes back on a connection of its own, until the other side hangs up or (`half`) we do."""
    port = int(url.split(":")[2].split("/")[0])
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock:
        sock.sendall(raw)
        if half:
            sock.shutdown(socket.SHUT_WR)
        came = b""
        while part := sock.recv(65536):
            came += part
        return came


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n", 400),
        (CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n", 400),
        (CHUNKED + b"1_0\r\nhellohello\r\n0\r\n\r\n", 400),
        (CHUNKED + b"zz\r\n", 400),
        (CHUNKED + b"\r\n", 400),
        (CHUNKED + b"3\r\nhello\r\n0\r\n\r\n", 400),
        (CHUNKED + b"ffffffff\r\n", 413),
        (CHUNKED + b"fffffffffffffffffffff\r\n", 400),
        (CHUNKED + b"5\r\nhel", 400),
        (CHUNKED + b"0\r\n" + b"x: y\r\n" * 200, 400),
        (POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", 400),
        (POST + b"Content-Length: -1\r\n\r\n", 400),
        (POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 400),
        (POST + b"Content-Length: 1000\r\n\r\n{", 400),
        (b"GET /v1/models\r\n\r\n", 505),
        (b"GET /v1/models HTTP/9.9\r\n\r\n", 505),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 414),
        (POST + b"x: y\r\n" * 300 + b"\r\n", 431),
    ],
)
def test_a_request_without_a_clear_end_is_refused_and_the_next_is_served(
    raw: bytes, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with metered_endpoint(ScriptedModel(["ok"])) as url:
        came = sent(url, raw)
        assert f"{status}".encode() in came.split(b"\n")[0] or b"Error code: %d" % status in came
        assert b"200 OK" not in came, "what follows a bad body is no request of its own"
        assert ask(url, user("Q")).status_code == 200
    assert not [one for one in caplog.records if one.levelno > logging.INFO], "no fault of ours"


def test_half_a_request_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(the_meter_server(), "timeout", 0.2)
    with metered_endpoint(ScriptedModel(["ok"])) as url:
        assert sent(url, b"POST /v1/chat", half=False) == b""
        assert b" 408 " in sent(url, POST + b"Content-Length: 9\r\n\r\n{", half=False)
        assert b" 408 " in sent(url, CHUNKED + b"5\r\nhe", half=False)
        assert ask(url, user("Q")).status_code == 200


def the_meter_server() -> type:
    from rlm_loop.meter import server

    return server._Handler  # pyright: ignore[reportPrivateUsage]


def test_a_key_for_each_request_holds_no_file_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(the_meter, "MOST", 30)
    with metered_endpoint(ScriptedModel(["ok"] * 60), out=tmp_path) as url:
        before = open_traces(tmp_path)
        for i in range(30):
            assert ask(url, user("Q"), headers={"Authorization": f"key-{i}"}).status_code == 200
        assert open_traces(tmp_path) == before
        refused = ask(url, user("Q"), headers={"Authorization": "another"})
        assert (refused.status_code, "name one with /s/NAME" in refused.text) == (429, True)
        assert ask(url, user("Q again"), headers={"Authorization": "key-0"}).status_code == 200, (
            "one that rested goes on"
        )
    assert len(list(tmp_path.glob("*.jsonl"))) == 30
    assert all(f.read_text().count('"run_end"') >= 1 for f in tmp_path.glob("*.jsonl"))


@pytest.mark.parametrize(
    "line",
    [
        b"Host: [::1\r\nHost: localhost",
        b"Host: localhost\r\nHost: evil.example",
        b"Host: localhost\r\nOrigin: http://[oh",
        b"Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example",
        b"Host: localhost\r\nSec-Fetch-Site: cross-site",
    ],
)
def test_pages_of_strangers_are_refused_by_every_header(line: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with metered_endpoint(ScriptedModel(["ok"])) as url:
        assert b" 403 " in sent(url, b"GET /v1/models HTTP/1.1\r\n" + line + b"\r\nConnection: close\r\n\r\n")
    assert not caplog.records


def test_traces_are_for_their_owner(tmp_path: Path) -> None:
    with metered_endpoint(ScriptedModel(["ok"]), out=tmp_path) as url:
        ask(url, user("Q"))
    (file,) = tmp_path.glob("*.jsonl")
    assert file.stat().st_mode & 0o777 == 0o600


def open_traces(folder: Path) -> int:
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # closed meanwhile, as that of the listing itself
            found += os.readlink(f"/proc/self/fd/{name}").startswith(str(folder))
    return found


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["", "chunked", "gzip"]), st.sampled_from(["", "5", "0", "-1", "x"]))
def test_any_bytes_are_a_body_or_refused(raw: bytes, coding: str, length: str) -> None:
    headers = Message()
    if coding:
        headers["Transfer-Encoding"] = coding
    if length:
        headers["Content-Length"] = length
    with suppress(Refused):
        assert len(body_of(headers, io.BytesIO(raw))) <= len(raw)
