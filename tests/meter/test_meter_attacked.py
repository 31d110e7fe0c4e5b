"""The meter before a client that means it ill: it answers or hangs up, holds nothing, and serves the next one."""

from __future__ import annotations

import io
import logging
import os
from contextlib import suppress
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from upstream import ANY, upstream
from wires import HEAD, ask, raw, user

from rlm_loop.meter import meter as the_meter
from rlm_loop.meter import metered_endpoint
from rlm_loop.meter.body import body_of
from rlm_loop.meter.request import Refused
from rlm_loop.models import ScriptedModel

CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("asked", "status"),
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
        (HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", 400),
        (HEAD + b"\r\n", 411),
        (HEAD + b"Content-Length: 9999999999\r\n\r\n", 413),
        (HEAD + b"Content-Length: -1\r\n\r\n", 400),
        (HEAD + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", 400),
        (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 400),
        (HEAD + b"Content-Length: 1000\r\n\r\n{", 400),
        (b"GET /v1/models\r\n\r\n", 505),
        (b"GET /v1/models HTTP/9.9\r\n\r\n", 505),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 414),
        (HEAD + b"x: y\r\n" * 300 + b"\r\n", 431),
    ],
)
def test_a_request_without_clear_end_is_refused_and_the_next_is_served(asked: bytes, status: int, caplog: Any) -> None:
    with metered_endpoint(ScriptedModel(["ok"])) as url:
        came = raw(url, asked, half=True)
        assert f"{status}".encode() in came.split(b"\n")[0] or b"Error code: %d" % status in came
        assert b"200 OK" not in came, "what follows a bad body is no request of its own"
        assert ask(url, user("Q")).status_code == 200
    assert not [one for one in caplog.records if one.levelno > logging.INFO], "no fault of ours"


def test_half_a_request_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_loop.meter.server._Handler.timeout", 0.2)
    with metered_endpoint(ScriptedModel(["ok"])) as url:
        assert raw(url, b"POST /v1/chat") == b""
        assert b" 408 " in raw(url, HEAD + b"Content-Length: 9\r\n\r\n{")
        assert b" 408 " in raw(url, CHUNKED + b"5\r\nhe")
        assert ask(url, user("Q")).status_code == 200


def test_a_key_for_each_request_holds_no_file_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(the_meter, "MOST", 30)
    with metered_endpoint(ScriptedModel(["ok"] * 60), out=tmp_path) as url:
        before = open_traces(tmp_path)
        for i in range(30):
            assert ask(url, user("Q"), headers={"Authorization": f"key-{i}"}).status_code == 200
        assert len(url.meter.calls) == 30  # which waits until each is written down
        assert open_traces(tmp_path) == before
        refused = ask(url, user("Q"), headers={"Authorization": "another"})
        assert (refused.status_code, "name one with /s/NAME" in refused.text) == (429, True)
        assert ask(url, user("Q again"), headers={"Authorization": "key-0"}).status_code == 200, "one of before goes on"
    assert len(list(tmp_path.glob("*.jsonl"))) == 30
    assert all(f.read_text().count('"run_end"') >= 1 for f in tmp_path.glob("*.jsonl"))


@pytest.mark.parametrize(
    "line",
    [
        b"Host: evil.example",
        b"Host: evil.example:80",
        b"Host: 127.0.0.1.evil.example",
        b"Host: [::2]",
        b"Host: [::1\r\nHost: localhost",
        b"Host: localhost\r\nHost: evil.example",
        b"Host: localhost\r\nOrigin: https://evil.example",
        b"Host: localhost\r\nOrigin: http://[oh",
        b"Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example",
        b"Host: localhost\r\nSec-Fetch-Site: cross-site",
    ],
)
def test_pages_of_strangers_are_refused_by_every_header(line: bytes, caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedModel(["ok"])
    with upstream(ANY) as up, metered_endpoint(model) as ours, metered_endpoint(forward=up.url) as theirs:
        for url in (ours, theirs):
            for asked in (b"GET /v1/models HTTP/1.1\r\n", b"POST /v1/chat/completions HTTP/1.1\r\n"):
                end = b"\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
                assert b" 403 " in raw(url, asked + line + end)
        assert (up.got, model.prompts, caplog.records) == ([], [], [])
        assert ask(ours, user("Q"), headers={"Origin": "http://localhost:3000"}).status_code == 200


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
    for name, value in (("Transfer-Encoding", coding), ("Content-Length", length)):
        if value:
            headers[name] = value
    with suppress(Refused):
        assert len(body_of(headers, io.BytesIO(raw))) <= len(raw)
