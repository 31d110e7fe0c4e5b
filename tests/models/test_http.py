"""The client below the models: addresses, proxies, and what goes wrong on the way."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator

import pytest
from conftest import ChatServer, completion  # pyright: ignore

from rlm_loop.models.http import BadAddress, Http, Lost, TooLate


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("address", ["localhost:1/v1", "ftp://host/v1", "http://", "", "http://[::1/v1"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(BadAddress):
        Http(address, headers={}, timeout=1)


def test_the_body_is_sent_as_it_is_and_the_answer_read(chat_server: ChatServer) -> None:
    chat_server.say(completion("hé"), x_more="1")
    client = Http(chat_server.address, headers={"Authorization": "Bearer k"}, timeout=5)
    found = client.post("/chat/completions", {"text": "Ω"})
    client.close()
    assert (found.status, found.headers["X-MORE"]) == (200, "1")
    assert found.json()["choices"][0]["message"]["content"] == "hé"
    assert chat_server.requests[0]["text"] == "Ω"
    assert chat_server.headers[0]["authorization"] == "Bearer k"


def test_a_user_in_the_address_is_sent_as_such_but_not_beside_a_key(chat_server: ChatServer) -> None:
    chat_server.say(completion())
    address = chat_server.address.replace("http://", "http://me:p%40ss@")
    for headers in ({}, {"Authorization": "Bearer k"}):
        Http(address, headers=headers, timeout=5).post("/chat/completions", {})
    basic = base64.b64encode(b"me:p@ss").decode()
    assert [h["authorization"] for h in chat_server.headers] == [f"Basic {basic}", "Bearer k"]


def test_a_lone_surrogate_is_no_text(chat_server: ChatServer) -> None:
    with pytest.raises(UnicodeEncodeError):
        Http(chat_server.address, headers={}, timeout=5).post("/chat/completions", {"text": "\udc80"})


def test_a_proxy_of_the_environment_is_used_where_it_is_wanted(
    chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat_server.say(completion())
    monkeypatch.setenv("http_proxy", chat_server.address.removesuffix("/v1"))
    Http("http://model.invalid/v1", headers={}, timeout=5).post("/chat/completions", {})
    assert chat_server.requests[0]["path"] == "http://model.invalid/v1/chat/completions"
    Http(chat_server.address, headers={}, timeout=5, proxies=False).post("/chat/completions", {})
    assert chat_server.requests[1]["path"] == "/v1/chat/completions"
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    Http(chat_server.address, headers={}, timeout=5).post("/chat/completions", {})
    assert chat_server.requests[2]["path"] == "/v1/chat/completions"


def test_a_proxy_that_cannot_be_used_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "socks5://localhost:1")
    with pytest.raises(Lost, match="proxy cannot be used"):
        Http("http://model.invalid/v1", headers={}, timeout=5)


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes a connection and says nothing."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        kept: list[socket.socket] = []
        threading.Thread(target=lambda: kept.append(server.accept()[0]), daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        for connection in kept:
            connection.close()


def test_silence_and_absence_are_told_apart(silent: str) -> None:
    with pytest.raises(TooLate):
        Http(silent, headers={}, timeout=0.05).post("/x", {})
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        with pytest.raises(Lost, match="refused"):
            Http(f"http://127.0.0.1:{taken.getsockname()[1]}", headers={}, timeout=5).get("/x")


def test_a_server_that_hangs_up(chat_server: ChatServer) -> None:
    chat_server.say("hang up")
    with pytest.raises(Lost, match="closed connection"):
        Http(chat_server.address, headers={}, timeout=5).post("/chat/completions", {})
