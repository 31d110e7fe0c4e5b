from __future__ import annotations

import socket
from typing import Any

import pytest
from chat_server import ChatServer, completion

from rlm_loop.accounting import Price
from rlm_loop.messages import Prompt, Reply, Usage, say
from rlm_loop.models import (
    AuthenticationFailed,
    ModelError,
    ModelNotFound,
    ModelUnreachable,
    OpenAICompatibleModel,
    RateLimited,
    RequestRejected,
    RetryPolicy,
)

ASK = Prompt.ask("hello")


def model(server: ChatServer, **options: Any) -> OpenAICompatibleModel:
    return OpenAICompatibleModel("m", server.address, **{"retry": RetryPolicy(attempts=1), **options})


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_a_call(chat_server: ChatServer) -> None:
    chat_server.say(completion("hi"))
    prompt = Prompt(
        (say("system", "s", "system"), say("user", "u", "task")),
        tools=({"type": "function", "function": {"name": "f"}},),
        stop=("END",),
        reply_schema={"type": "object"},
    )
    asked = model(chat_server, temperature=0.5, seed=3, options={"top_p": 0.9})
    reply = asked.complete(prompt, max_tokens=11)
    assert reply == Reply("hi", usage=Usage(7, 2, 5), seconds=reply.seconds)
    assert chat_server.requests == [
        {
            "path": "/v1/chat/completions",
            "model": "m",
            **prompt.to_dict(),
            "top_p": 0.9,
            "max_tokens": 11,
            "temperature": 0.5,
            "seed": 3,
        }
    ]
    assert "authorization" not in chat_server.headers[0]


def test_the_key(chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    chat_server.say(completion())
    monkeypatch.setenv("LAB_KEY", "from-the-environment")
    for options in ({"key_variable": "LAB_KEY"}, {"key_variable": "LAB_KEY", "api_key": "given"}):
        asked = model(chat_server, **options)
        asked.complete(ASK)
    assert [h["authorization"] for h in chat_server.headers] == ["Bearer from-the-environment", "Bearer given"]


@pytest.mark.parametrize(
    ("named", "sent"),
    [(None, False), ("{}", True), ("{}/", True), ("http://127.0.0.1:1/v1", False), ("nonsense", False)],
)
def test_openais_key_goes_only_where_the_user_said(
    chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch, named: str | None, sent: bool
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-users-own-key")
    if named is None:
        monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    else:
        monkeypatch.setenv("OPENAI_BASE_URL", named.format(chat_server.address))
    chat_server.say(completion())
    asked = model(chat_server)
    asked.complete(ASK)
    assert ("authorization" in chat_server.headers[0]) is sent


@pytest.mark.parametrize(
    ("status", "body", "kind", "says"),
    [
        (
            401,
            {"error": {"message": "who are you"}},
            AuthenticationFailed,
            "who are you.*give api_key= .*OPENAI_API_KEY",
        ),
        (403, {"error": "no"}, AuthenticationFailed, "OPENAI_API_KEY"),
        (404, {"error": {"message": "no model m"}}, ModelNotFound, "check the model's name"),
        (400, {"error": {"message": "too\nlong"}}, RequestRejected, "status 400: too long"),
        (422, {"detail": "bad field"}, RequestRejected, "bad field"),
        (429, {"error": {"message": "slow"}}, RateLimited, "limits the rate"),
        (500, "<html>oops</html>", ModelError, "status 500"),
        (200, "<html>a page</html>", ModelError, "no completion"),
        (200, {"error": {"message": "overloaded"}}, ModelError, "overloaded"),
    ],
)
def test_errors_say_whose_fault_it_is(
    chat_server: ChatServer, status: int, body: Any, kind: type[ModelError], says: str
) -> None:
    chat_server.say(body, status=status)
    asked = model(chat_server)
    with pytest.raises(kind, match=says) as caught:
        asked.complete(ASK)
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)


def test_a_refused_key_is_told_from_a_missing_one(chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong")
    monkeypatch.setenv("OPENAI_BASE_URL", chat_server.address)
    chat_server.say({}, status=401)
    asked = model(chat_server)
    with pytest.raises(AuthenticationFailed, match=r"refused it .*set OPENAI_API_KEY") as caught:
        asked.complete(ASK)
    assert "sk-wrong" not in str(caught.value)


@pytest.mark.parametrize("trouble", [(429, {}), (500, {}), (503, "x"), (200, "not json"), (200, "hang up")])
def test_passing_trouble_is_waited_out(chat_server: ChatServer, waits: Any, trouble: tuple[int, Any]) -> None:
    seen, sleep = waits
    chat_server.say(trouble[1], trouble[1], status=trouble[0])
    chat_server.say(completion("at last"))
    asked = model(chat_server, retry=RetryPolicy(first=1.0, sleep=sleep, clock=lambda: 0.0, chance=lambda: 0.0))
    reply = asked.complete(ASK)
    assert reply.text == "at last"
    assert seen == [1.0, 2.0]
    assert reply.waited == 3.0
    assert reply.seconds >= reply.waited


def test_retry_after_is_kept_to(chat_server: ChatServer, waits: Any) -> None:
    seen, sleep = waits
    chat_server.say({}, status=429, Retry_After="17")
    chat_server.say(completion())
    asked = model(chat_server, retry=RetryPolicy(sleep=sleep))
    assert asked.complete(ASK).waited >= 17
    assert seen == [17.0]


@pytest.mark.parametrize(
    ("status", "body"), [(400, {}), (401, {}), (404, {}), (429, {"error": {"code": "insufficient_quota"}})]
)
def test_what_waiting_does_not_help_is_final(chat_server: ChatServer, waits: Any, status: int, body: Any) -> None:
    seen, sleep = waits
    chat_server.say(body, status=status)
    asked = model(chat_server, retry=RetryPolicy(sleep=sleep))
    with pytest.raises(ModelError):
        asked.complete(ASK)
    assert seen == []


def test_an_address_where_nobody_is() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        asked = OpenAICompatibleModel("m", address, retry=RetryPolicy(attempts=2, sleep=lambda _: None))
        with pytest.raises(ModelUnreachable, match=f"{address} gave no reply"):
            asked.complete(ASK)


def test_a_password_in_the_address_is_refused_and_shown_nowhere() -> None:
    with pytest.raises(ValueError, match="without a user") as caught:
        OpenAICompatibleModel("m", "http://me:secret@127.0.0.1:9/v1")
    assert "secret" not in str(caught.value)


def test_a_price_gives_a_cost(chat_server: ChatServer) -> None:
    chat_server.say(completion())
    asked = model(chat_server, price=Price(1e6, 10e6))
    assert asked.complete(ASK).usage == Usage(7, 2, 5, cost=27.0)


def test_text_that_is_no_unicode_is_refused_before_it_is_sent(chat_server: ChatServer) -> None:
    chat_server.say(completion())
    asked = model(chat_server)
    with pytest.raises(RequestRejected, match="surrogate"):
        asked.complete(Prompt.ask("\ud800"))
    assert chat_server.requests == []


def test_what_is_sent_with_every_prompt_tells_two_models_apart() -> None:
    options = {"top_p": 0.9, "headers": {"X": "secret"}}
    model = OpenAICompatibleModel("m", "http://localhost:1/v1", api_key="k", temperature=0.5, options=options)
    assert model.sampling == {"temperature": 0.5, "seed": 0, "max_tokens": None, "top_p": 0.9}
