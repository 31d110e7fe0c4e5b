"""A chat-completions endpoint: what is sent to it, what its answers mean, and whose fault its errors are."""

from __future__ import annotations

from typing import Any

import pytest
from upstream import Answer, Upstream, completion

from rlm_loop.accounting import Price
from rlm_loop.messages import Prompt, Reply, ToolCall, Usage, say
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


def model(server: Upstream, **options: Any) -> OpenAICompatibleModel:
    return OpenAICompatibleModel("m", server.url, **{"retry": RetryPolicy(attempts=1), **options})


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_a_call(chat_server: Upstream) -> None:
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
    settings = {"top_p": 0.9, "max_tokens": 11, "temperature": 0.5, "seed": 3}
    assert chat_server.requests == [{"model": "m", **prompt.to_dict(), **settings}]
    (got,) = chat_server.got
    assert (got.path, got.header("authorization")) == ("/v1/chat/completions", None)


def test_the_key(chat_server: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    chat_server.say(completion())
    monkeypatch.setenv("LAB_KEY", "from-the-environment")
    model(chat_server, key_variable="LAB_KEY").complete(ASK)
    model(chat_server, key_variable="LAB_KEY", api_key="given").complete(ASK)
    sent = [got.header("authorization") for got in chat_server.got]
    assert sent == ["Bearer from-the-environment", "Bearer given"]


@pytest.mark.parametrize(
    ("named", "sent"),
    [(None, False), ("{}", True), ("{}/", True), ("http://127.0.0.1:1/v1", False), ("nonsense", False)],
)
def test_openais_key_goes_only_where_the_user_said(
    chat_server: Upstream, monkeypatch: pytest.MonkeyPatch, named: str | None, sent: bool
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-users-own-key")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    if named is not None:
        monkeypatch.setenv("OPENAI_BASE_URL", named.format(chat_server.url))
    chat_server.say(completion())
    model(chat_server).complete(ASK)
    assert (chat_server.got[0].header("authorization") is not None) is sent


@pytest.mark.parametrize(
    ("status", "body", "kind", "says", "again"),
    [
        (401, {"error": {"message": "who are you"}}, AuthenticationFailed, "who are you.*OPENAI_API_KEY", False),
        (404, {"error": {"message": "no model m"}}, ModelNotFound, "no model m", False),
        (400, {"error": {"message": "too\nlong"}}, RequestRejected, "400: too long", False),
        (422, {"detail": "bad field"}, RequestRejected, "bad field", False),
        (429, {"error": {"message": "slow"}}, RateLimited, "slow", True),
        (429, {"error": {"code": "insufficient_quota"}}, RateLimited, "rate", False),
        (500, "<html>oops</html>", ModelError, "500", True),
        (200, "<html>a page</html>", ModelError, "a page", True),
        (200, {"error": {"message": "overloaded"}}, ModelError, "overloaded", True),
    ],
)
def test_errors_say_whose_fault_it_is_and_whether_waiting_helps(
    chat_server: Upstream, status: int, body: Any, kind: type[ModelError], says: str, again: bool
) -> None:
    chat_server.say(body, status=status)
    with pytest.raises(kind, match=says) as caught:
        model(chat_server).complete(ASK)
    assert (type(caught.value), caught.value.retryable) == (kind, again)
    assert "\n" not in str(caught.value)


def test_a_refused_key_is_told_from_a_missing_one(chat_server: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong")
    monkeypatch.setenv("OPENAI_BASE_URL", chat_server.url)
    chat_server.say({}, status=401)
    with pytest.raises(AuthenticationFailed, match=r"refused it .*set OPENAI_API_KEY") as caught:
        model(chat_server).complete(ASK)
    assert "sk-wrong" not in str(caught.value)


def test_passing_trouble_is_waited_out(chat_server: Upstream) -> None:
    seen: list[float] = []
    chat_server.answers = [Answer([None]), Answer.of("x", 503), Answer.of(completion("at last"))]
    retry = RetryPolicy(first=1.0, sleep=seen.append, clock=lambda: 0.0, chance=lambda: 0.0)
    reply = model(chat_server, retry=retry).complete(ASK)
    assert (reply.text, seen, reply.waited) == ("at last", [1.0, 2.0], 3.0)
    assert reply.seconds >= reply.waited


def test_an_address_where_nobody_is() -> None:
    asked = OpenAICompatibleModel("m", "http://127.0.0.1:9/v1", retry=RetryPolicy(attempts=1))
    with pytest.raises(ModelUnreachable, match=r"127\.0\.0\.1:9/v1 .*refused"):
        asked.complete(ASK)


@pytest.mark.parametrize(
    "address", ["localhost:1/v1", "ftp://host/v1", "http://", "", "http://[::1/v1", "http://me:secret@host/v1"]
)
def test_what_is_no_address_is_refused_and_its_password_is_shown_nowhere(address: str) -> None:
    with pytest.raises(ValueError) as caught:
        OpenAICompatibleModel("m", address)
    assert "secret" not in str(caught.value)


def test_text_that_is_no_unicode_is_refused_before_it_is_sent(chat_server: Upstream) -> None:
    chat_server.say(completion())
    with pytest.raises(RequestRejected, match="surrogate"):
        model(chat_server).complete(Prompt.ask("\ud800"))
    assert chat_server.got == []


def test_what_is_sent_with_every_prompt_tells_two_models_apart() -> None:
    options = {"top_p": 0.9, "headers": {"X": "secret"}}
    asked = OpenAICompatibleModel("m", "http://localhost:1/v1", api_key="k", temperature=0.5, options=options)
    assert asked.sampling == {"temperature": 0.5, "seed": 0, "max_tokens": None, "top_p": 0.9}


def told(server: Upstream, message: dict[str, Any], finish: str | None, stated: Any, **options: Any) -> Reply:
    server.say({"choices": [{"message": message, "finish_reason": finish}], "usage": stated})
    return model(server, **options).complete(ASK)


CALL = {"id": "a", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
CALLED = (ToolCall("a", "add", '{"a": 1}'),)
BARE = {"function": {"name": "f"}}
OBJECT = {"id": "", "function": {"name": "f", "arguments": {"ä": [1]}}}
PARTS = [{"type": "text", "text": "a"}, {"type": "image"}, {"text": "b"}]


@pytest.mark.parametrize(
    ("message", "finish", "expected"),
    [
        ({"content": "hi"}, "stop", Reply("hi")),
        ({"content": None}, "stop", Reply("")),
        ({}, "length", Reply("", finish_reason="length")),
        ({"content": "x"}, None, Reply("x")),
        ({"content": "x"}, "max_tokens", Reply("x", finish_reason="length")),
        ({"content": "x"}, "something new", Reply("x")),
        ({"content": "x"}, "content_filter", Reply("x", finish_reason="content_filter")),
        ({"content": None, "refusal": "I won't."}, "stop", Reply("", finish_reason="content_filter")),
        ({"content": PARTS}, "stop", Reply("ab")),
        ({"tool_calls": [CALL]}, "tool_calls", Reply("", CALLED, "tool_calls")),
        ({"tool_calls": [CALL]}, None, Reply("", CALLED, "tool_calls")),
        # cut off is cut off, also with calls: such a reply is never executed
        ({"tool_calls": [CALL]}, "length", Reply("", CALLED, "length")),
        ({"tool_calls": [BARE]}, None, Reply("", (ToolCall(None, "f", ""),), "tool_calls")),
        ({"tool_calls": [OBJECT]}, "tool_calls", Reply("", (ToolCall(None, "f", '{"ä": [1]}'),), "tool_calls")),
    ],
)
def test_what_a_body_says(chat_server: Upstream, message: dict[str, Any], finish: str | None, expected: Reply) -> None:
    reply = told(chat_server, message, finish, None)
    said = (expected.text, expected.tool_calls, expected.finish_reason, Usage(None, None))
    assert (reply.text, reply.tool_calls, reply.finish_reason, reply.usage) == said


USED = {"prompt_tokens": 10, "completion_tokens": 2}
CACHED = {"prompt_tokens_details": {"cached_tokens": 5, "cache_creation_tokens": 2}}
PRICE = Price(1e6, 3e6, cached=1e5, cache_write=2e6)  # per million tokens


@pytest.mark.parametrize(
    ("stated", "price", "expected"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 0}, None, Usage(10, 0, None)),
        ({**USED, "prompt_tokens_details": None}, None, Usage(10, 2, None)),
        ({**USED, "prompt_tokens_details": {"cached_tokens": 0}}, None, Usage(10, 2, 0)),
        ({**USED, "cost": 0.5}, None, Usage(10, 2, None, cost=0.5)),
        ({"prompt_tokens": 10, **CACHED}, None, Usage(10, None, 5, cache_write_tokens=2)),
        ({**USED, "completion_tokens_details": {"reasoning_tokens": 0}}, None, Usage(10, 2, reasoning_tokens=0)),
        (USED, PRICE, Usage(10, 2, cost=16.0)),
        ({**USED, **CACHED}, PRICE, Usage(10, 2, 5, cache_write_tokens=2, cost=13.5)),
        ({**USED, "cost": 1.0}, PRICE, Usage(10, 2, cost=1.0)),
        ({"completion_tokens": 2}, PRICE, Usage(None, 2)),
    ],
)
def test_what_is_not_stated_is_none_or_a_cost_by_the_price(
    chat_server: Upstream, stated: Any, price: Price | None, expected: Usage
) -> None:
    assert told(chat_server, {"content": "x"}, "stop", stated, price=price).usage == expected
