"""The meter in front of a provider: what goes through is untouched, what came is charged, and nothing hangs."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from upstream import ANY, Answer, upstream
from wires import HEAD, ask, assistant, post, raw, streaming, user  # pyright: ignore

from rlm_loop.accounting import Budget
from rlm_loop.meter import forward, meter, metered_endpoint, read_meter
from rlm_loop.models import ScriptedModel

USAGE = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}
CHAT = {"id": "c", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}}], "usage": USAGE}
KEY = "sk-proj-0123456789abcdef0123456789abcdef"


def chunk(text: str, **more: Any) -> dict[str, Any]:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": text}}], **more}


def test_path_query_headers_and_body_go_through_as_they_are() -> None:
    body = b'{ "model":"m",\t"messages":[{"role":"user","content":"\\u00e9 \xc3\xa9"}],"x":1e2 }'
    with upstream(Answer.of(CHAT, X_Request_Id="r-7", Set_Cookie="a=b")) as up, metered_endpoint(forward=up.url) as url:
        head = (
            b"POST /v1/chat/completions?beta=true&a=%20b HTTP/1.1\r\nHost: localhost\r\n"
            b"Connection: close\r\nConnection: X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\n"
            b"Authorization: Bearer sk-1\r\nX-Odd: a, b\r\nX-Odd: c\r\n"
            b"Accept-Encoding: gzip, br;q=0.9, deflate\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n"
        )
        came = raw(url, head + body)
    got = up.got[0]
    assert (got.method, got.path, got.body) == ("POST", "/v1/chat/completions?beta=true&a=%20b", body)
    assert [(k, v) for k, v in got.headers if k not in ("Host", "Content-Length")] == [
        ("Authorization", "Bearer sk-1"),
        ("X-Odd", "a, b"),
        ("X-Odd", "c"),
        ("Accept-Encoding", "identity"),
    ]
    assert got.header("Host") == up.url.removeprefix("http://")
    head, _, answer = came.partition(b"\r\n\r\n")
    assert (answer, b"Server:" in head) == (json.dumps(CHAT).encode(), False), "nothing of the meter's own is added"
    assert {b"X-Request-Id: r-7", b"Set-Cookie: a=b"} <= {*head.split(b"\r\n")}


PATHS = [
    ("POST", "/api/v1", "/v1/x", "/api/v1/x", None),
    ("POST", "/a", "/v1/x", "/a/v1/x", None),
    ("POST", "", "/s/mine/v1/x", "/v1/x", None),
    ("GET", "", "/v1/models?a=1", "/v1/models?a=1", None),
    ("DELETE", "", "/v1/files/f-1", "/v1/files/f-1", None),
    ("POST", "", "/openai/v1/chat/completions", "/openai/v1/chat/completions", "chat"),  # Groq
    ("POST", "", "/openai/deployments/m/chat/completions", "/openai/deployments/m/chat/completions", "chat"),  # Azure
    ("POST", "", "/v1/account/gateway/compat/chat/completions", "/v1/account/gateway/compat/chat/completions", "chat"),
    ("POST", "", "/anthropic/v1/messages", "/anthropic/v1/messages", "messages"),
    # of OpenAI's assistants: no message of a model
    ("POST", "", "/v1/threads/thread_1/messages", "/v1/threads/thread_1/messages", None),
    ("POST", "", "/v1/responses/resp_1/cancel", "/v1/responses/resp_1/cancel", None),
]


@pytest.mark.parametrize(("method", "below", "path", "sent", "api"), PATHS)
def test_where_a_request_goes_and_whether_metered(method: str, below: str, path: str, sent: str, api: Any) -> None:
    body = json.dumps({"model": "m", "messages": [user("Q")]}) if method == "POST" else None
    with upstream(Answer.of(CHAT, status=207)) as up, metered_endpoint(forward=up.url + below) as url:
        answer = httpx.request(method, url.root + path, content=body, trust_env=False, timeout=60)
        calls = list(url.meter.calls)
    assert (answer.status_code, answer.json(), up.got[0].path) == (207, CHAT, sent)
    assert [call.protocol for call in calls] == ([api] if api else [])


def test_a_request_that_follows_at_once_goes_on_from_the_reply_before_it() -> None:
    """The first reply is whole for the client and not over for the meter when the second one is."""
    over = threading.Event()
    whole = Answer.events(chunk("Hello.", usage=USAGE), "[DONE]", over)
    with upstream(whole, Answer.of(CHAT)) as up, metered_endpoint(forward=up.url) as url:
        with streaming(url, "question") as lines:
            assert "data: [DONE]" in lines
            ask(url, user("question"), assistant("Hello."), user("and more"))
            over.set()
            assert list(lines) == [""]
        assert sorted((call.number, call.node, call.turn) for call in url.meter.calls) == [(1, "0", 1), (2, "0", 2)]


def test_a_request_beside_a_reply_that_goes_on_is_counted_after_it_as_a_conversation_of_its_own() -> None:
    asked_beside = threading.Event()
    slow = Answer.events(chunk("Hel"), asked_beside, chunk("lo.", usage=USAGE), "[DONE]")
    with upstream(slow, Answer.of(CHAT)) as up, metered_endpoint(forward=up.url) as url:
        with streaming(url, "question") as lines:
            assert any("Hel" in line for line in lines)
            ask(url, user("another question"))
            assert url.meter.sessions["default"].ledger.calls == []
            asked_beside.set()
            assert list(lines)
        assert [(call.node, call.turn) for call in sorted(url.meter.calls, key=lambda call: call.number)] == [
            ("0", 1),
            ("0.1", 1),
        ]


@pytest.mark.slow
def test_many_streams_at_once_are_not_mixed() -> None:
    barrier = threading.Barrier(32)

    def all_under_way(_: Any) -> None:
        barrier.wait(60)

    def answer(name: str) -> Answer:
        return Answer.events(chunk(f"{name}-a"), all_under_way, chunk(f"{name}-b", usage=USAGE), "[DONE]")

    def one(i: int) -> bytes:
        return ask(url.session(f"s{i}"), user(f"question {i}"), stream=True).content

    answers = [answer(f"n{i}") for i in range(32)]
    with upstream(*answers) as up, metered_endpoint(forward=up.url) as url:
        with ThreadPoolExecutor(32) as pool:
            bodies = list(pool.map(one, range(32)))
        sent = [b"".join(piece for piece in one.pieces if piece is not all_under_way) for one in answers]
        assert sorted(bodies) == sorted(sent)
        assert len(url.meter.figures.sessions) == 32
        assert {ledger.usage.input_tokens for ledger, _ in url.meter.figures.sessions.values()} == {100}


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 529])
def test_a_refusal_reaches_the_client_as_it_was(status: int) -> None:
    told = {"error": {"message": f"no: key {KEY} is bad", "type": "x"}}
    with upstream(Answer.of(told, status, Retry_After="17")) as up, metered_endpoint(forward=up.url) as url:
        answer = ask(url, user("Hi"), headers={"Authorization": f"Bearer {KEY}"})
        assert (answer.status_code, answer.json(), answer.headers["retry-after"]) == (status, told, "17")
        call: Any = url.meter.calls[0]
        assert (call.status, call.call, len(up.got)) == (status, None, 1), "the meter does not try again"
        assert (call.error[:7], KEY in call.error) == ("no: key", False)


def test_a_provider_that_is_down() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        with metered_endpoint(forward=f"http://127.0.0.1:{port}") as url:
            answer = ask(url, user("Hi"))
            assert (answer.status_code, answer.headers["x-should-retry"]) == (502, "true")
            assert f"127.0.0.1:{port}" in answer.json()["error"]["message"]
            assert post(url, {"messages": [user("Hi")]}, "/messages").json()["type"] == "error"
            assert [call.status for call in url.meter.calls] == [502, 502]


@pytest.mark.parametrize("silent", [False, True], ids=["breaks off", "hangs"])
def test_a_stream_that_ends_too_soon_is_cut_for_the_client_too(silent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.Event()
    if silent:
        monkeypatch.setattr(forward, "SILENCE", 0.2)
    sent = Answer.events(chunk("Hel"), held if silent else None)
    asked = json.dumps({"messages": [user("Hi")], "stream": True}).encode()
    with upstream(sent, Answer.of(CHAT)) as up, metered_endpoint(forward=up.url) as url:
        came = raw(url, b"%sConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (HEAD, len(asked), asked))
        piece = sent.pieces[0]
        assert came.endswith(b"\r\n\r\n%x\r\n%b\r\n" % (len(piece), piece)), "no last chunk: nobody takes it for whole"
        held.set()
        assert ask(url, user("Hi")).status_code == 200
        broken, whole = url.meter.calls
    assert (broken.status, broken.input_tokens, whole.input_tokens) == (200, None, 100)


def test_a_client_that_leaves_ends_the_providers_work_at_its_next_pieces() -> None:
    def pause(_: Any) -> None:
        time.sleep(0.01)

    with upstream(Answer.events(*[chunk("Hel"), pause] * 3000)) as up, metered_endpoint(forward=up.url) as url:
        with streaming(url, "Hi") as lines:
            assert any("Hel" in line for line in lines)
        assert up.gone.wait(60)
        url.meter.sessions["default"].wait(60)
        assert [(call.delivered, call.input_tokens) for call in url.meter.calls] == [(False, None)]


def test_a_meter_that_closes_hangs_up_on_a_silent_provider() -> None:
    asked, held = threading.Event(), threading.Event()

    def hold(handler: Any) -> None:
        asked.set()
        held.wait(60)

    with upstream(Answer.events(hold)) as up, ThreadPoolExecutor(1) as pool:
        with metered_endpoint(forward=up.url) as url:
            waiting = pool.submit(ask, url, user("Hi"), stream=True)
            assert asked.wait(60)
        assert isinstance(waiting.exception(60), httpx.HTTPError)
        held.set()
    assert [(call.delivered, call.input_tokens) for call in url.meter.calls] == [(False, None)]


GEMINI = "beta/models/m:generateContent"  # after /v1
_Q = {"messages": [user("x")]}
#: Path, body, answer, its tokens as far as they can be read, and what is said of it.
UNREAD: list[tuple[str, Any, Answer, int | None, str]] = [
    ("/chat/completions", b"\xff\xfe no JSON", ANY, 100_000, "request"),
    ("/chat/completions", {"messages": "odd"}, ANY, 100_000, "messages"),
    ("/chat/completions", {"messages": [{"role": "robot", "content": "x"}]}, ANY, 100_000, "role"),
    ("/chat/completions", b"[" * 100_000, ANY, 100_000, "request"),
    ("/responses", {}, ANY, 100_000, "input"),
    ("/responses", {"input": [{"type": "message", "role": "robot"}]}, ANY, 100_000, "robot"),
    ("/responses", {"input": "Q", "tools": ["file_search"]}, ANY, 100_000, "request"),
    ("/messages", {}, ANY, 100_000, "messages"),
    ("/messages", {"messages": [{"role": "robot", "content": "x"}]}, ANY, 100_000, "robot"),
    (GEMINI, {}, ANY, 100_000, "contents"),
    (GEMINI, {"contents": [{"role": "robot"}]}, ANY, 100_000, "robot"),
    ("/chat/completions", _Q, Answer.of({"strange": 1}), None, "reply"),
    ("/chat/completions", _Q, Answer([b"\xff\x00"], end="length"), None, "reply"),
    ("/chat/completions", _Q, Answer.events("{broken", {"a": [1]}), None, ""),
    ("/chat/completions", _Q, Answer.of([[1], 2]), None, "reply"),
]


@pytest.mark.parametrize(("path", "body", "answer", "tokens", "says"), UNREAD)
def test_what_cannot_be_read_goes_through_and_is_unattributed(
    path: str, body: Any, answer: Answer, tokens: int | None, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    with upstream(answer) as up, metered_endpoint(forward=up.url) as url, caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert post(url, sent, path).content == b"".join(answer.pieces)
        calls, frame = url.meter.calls, url.meter.frame()
    assert [got.body for got in up.got] == [sent, sent]
    assert [(call.input_tokens, says in call.unread) for call in calls] == [(tokens, True)] * 2
    if tokens is not None:
        assert (set(frame.cause), frame.tokens.sum()) == ({"unattributed"}, 2 * tokens)
        assert [r for r in caplog.records if r.levelno == logging.WARNING]


def test_no_key_and_no_secret_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.DEBUG),
        upstream(Answer.of(CHAT), Answer.of({"strange": KEY})) as up,
        metered_endpoint(forward=up.url, out=tmp_path / "theirs") as theirs,
        metered_endpoint(ScriptedModel(["ok"] * 2), out=tmp_path / "ours") as ours,
    ):
        for url in (theirs, ours):
            for said in (f"use {KEY} please, private words", f"again {KEY}", 7):
                body = {"messages": [user(said)], "user": KEY, "api_key": KEY}
                post(url, body, f"/chat/completions?key={KEY}", Authorization=f"Bearer {KEY}", x_api_key=KEY)
            assert (len(url.meter.calls), KEY in repr(url.meter.calls)) == (3, False)
    for folder in tmp_path.iterdir():
        (file,) = folder.iterdir()
        assert file.stat().st_mode & 0o777 == 0o600, "a trace is for its owner"
        kept = file.read_text()
        assert ("private words" in kept, KEY in kept + file.name) == (True, False)
    ours_said = [r.getMessage() for r in caplog.records if r.name.startswith("rlm_loop")]
    assert not [line for line in ours_said if KEY in line or "private words" in line]
    assert read_meter(tmp_path / "theirs").calls[0].input_tokens == 100


@pytest.mark.parametrize(
    "line",
    [
        b"POST http://127.0.0.1:9/v1/chat/completions HTTP/1.1",
        b"POST @127.0.0.1:9/v1/chat/completions HTTP/1.1",
        b"CONNECT 127.0.0.1:9 HTTP/1.1",
        b"POST /v1/..//http://127.0.0.1:9/ HTTP/1.1",
        b"POST /%2e%2e/admin HTTP/1.1",
        b"POST /v1/%3f/../../admin HTTP/1.1",
        b"POST /v1/..%5c..%5cadmin HTTP/1.1",
        b"POST /v1/..;/admin HTTP/1.1",
    ],
)
def test_a_request_cannot_choose_where_it_goes(line: bytes) -> None:
    with upstream(Answer.of(CHAT)) as up, metered_endpoint(forward=up.url) as url:
        came = raw(url, line + b"\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
        assert came.split()[1] in (b"400", b"501")
    assert up.got == []


def test_whatever_the_path_the_provider_is_the_one() -> None:
    line = b"POST //127.0.0.1:9/v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nX-Folded: a\r\n b\r\n"
    with upstream(Answer.of(CHAT)) as up, metered_endpoint(forward=up.url) as url:
        raw(url, line + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}")
    (got,) = up.got
    assert got.header("X-Folded").split() == ["a", "b"]
    assert "\n" not in got.header("X-Folded")


WRONG = ["ftp://x", "nowhere", "https://user:pass@x", "http://", "https://x/v1?key=1"]


@pytest.mark.parametrize("wrong", [*({"forward": url} for url in WRONG), {}, {"model": "local", "forward": "http://x"}])
def test_either_a_model_or_the_address_of_a_provider(wrong: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError), match="forward"), metered_endpoint(**wrong):
        pass


PICTURE = "data:image/png;base64,AA"
_CHAT = {"messages": [user("Q")]}
_GRAMMAR = {"type": "grammar", "grammar": "root"}
#: What models of ours refuse (`None`) or do otherwise, and providers do.
TAKEN_BY_A_PROVIDER: list[tuple[str, dict[str, Any], list[str] | None]] = [
    ("/chat/completions", {**_CHAT, "max_tokens": 0}, []),
    ("/chat/completions", {**_CHAT, "response_format": _GRAMMAR}, ["response_format"]),
    ("/chat/completions", {**_CHAT, "n": 2}, ["n"]),
    ("/chat/completions", {"messages": [user([{"type": "image_url", "image_url": {"url": PICTURE}}])]}, None),
    ("/messages", {"messages": [user([{"type": "image", "source": {"type": "base64", "data": PICTURE}}])]}, None),
    ("/responses", {"prompt": {"id": "pmpt_1", "version": "2"}}, None),
    ("/responses", {"input": [user([{"type": "input_image", "image_url": PICTURE}])]}, None),
]


@pytest.mark.parametrize(("path", "asked", "not_applied"), TAKEN_BY_A_PROVIDER)
def test_what_models_of_ours_do_not_take_is_read_and_charged_where_a_provider_takes_it(
    path: str, asked: Any, not_applied: list[str] | None
) -> None:
    with upstream(ANY) as up, metered_endpoint(forward=up.url) as url:
        assert post(url, {"model": "m", **asked}, path).status_code == 200
        (call,), causes = url.meter.calls, url.meter.frame().groupby("cause").tokens.sum()
    assert (call.unread, call.input_tokens, causes.sum()) == ("", 100_000, 100_000)
    if PICTURE in str(asked):
        assert PICTURE.encode() in up.got[0].body
        assert causes["unattributed"] > 90_000, "nobody here knows what a picture counts"
    with metered_endpoint(ScriptedModel(["x"])) as url:
        status = post(url, {"model": "m", **asked}, path).status_code
        assert [list(call.not_applied) for call in url.meter.calls if call.status == 200] == (
            [] if not_applied is None else [not_applied]
        )
    refused = 400 if path == "/chat/completions" else 404  # ours are served as chat completions alone
    assert status == (200 if not_applied is not None else refused)


def test_a_budget_ends_any_agent_with_its_own_api_s_error() -> None:
    """The first reply reaches the limit: the next request is refused, and does not reach the provider."""
    with upstream(*[Answer.of(CHAT)] * 3) as up, metered_endpoint(forward=up.url, budget=Budget(tokens=5)) as url:
        assert ask(url, user("question")).status_code == 200
        refused = ask(url, user("question"), assistant("Hello."), user("and more"))
        told = refused.headers["x-should-retry"], refused.json()["error"]["code"]
        assert (refused.status_code, *told) == (429, "false", "insufficient_quota")
    assert (len(up.got), [call.status for call in url.meter.calls]) == (1, [200, 429])
    with upstream(*[Answer.of(CHAT)] * 3) as up, metered_endpoint(forward=up.url, budget=Budget(cost=1.0)) as url:
        assert [ask(url, user("question")).status_code for _ in range(2)] == [200, 429]


SPENT: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("/v1/responses", {"input": "Q"}, {"type": "insufficient_quota", "code": "insufficient_quota"}),
    ("/v1/messages", _CHAT, {"type": "rate_limit_error"}),
    ("/v1beta/models/g:generateContent", {"contents": [{"parts": [{"text": "Q"}]}]}, {"status": "RESOURCE_EXHAUSTED"}),
]


@pytest.mark.parametrize(("path", "asked", "error"), SPENT)
def test_a_spent_budget_is_told_in_the_shape_of_each_api(path: str, asked: Any, error: dict[str, Any]) -> None:
    with upstream(ANY) as up, metered_endpoint(forward=up.url, budget=Budget(tokens=5)) as url:
        first, second = (httpx.post(url.root + path, json=asked) for _ in range(2))
    assert (first.status_code, second.status_code, len(up.got)) == (200, 429, 1)
    assert second.json()["error"].items() >= error.items()


def test_a_reply_that_is_just_over_counts_against_the_limit_of_the_next_request() -> None:
    over = threading.Event()
    whole = Answer.events(chunk("Hello.", usage=USAGE), "[DONE]", over)
    with (
        upstream(whole, Answer.of(CHAT)) as up,
        metered_endpoint(forward=up.url, budget=Budget(tokens=5)) as url,
        streaming(url, "question") as lines,
    ):
        assert "data: [DONE]" in lines
        threading.Timer(0.1, over.set).start()
        assert ask(url, user("another question")).status_code == 429
        assert list(lines) == [""]


def test_tables_of_prices_are_loaded_for_a_limit_of_cost_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(meter, "known_price", asked.append)
    for budget in (None, Budget(tokens=1000)):
        with upstream(Answer.of(CHAT)) as up, metered_endpoint(forward=up.url, budget=budget) as url:
            assert [ask(url, user("question")).status_code for _ in range(2)] == [200, 200]
            assert [call.input_tokens for call in url.meter.calls] == [100, 100]
    assert asked == []
