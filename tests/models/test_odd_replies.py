"""What a server sends in the place of a completion is a `ModelError`, or a reply; never another exception."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from chat_server import ChatServer, completion
from odd_bodies import BROKEN

from rlm_loop import DirectAgent, LeanAgent
from rlm_loop.models import ModelError, OllamaModel, OpenAICompatibleModel, RetryPolicy
from rlm_loop.models.http import LONGEST, Http, Lost
from rlm_loop.models.remote import retry_after
from rlm_loop.models.wire import to_reply, to_usage


@pytest.mark.parametrize("kind", ["chat", "ollama"])
@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN.keys())
def test_what_is_no_completion_is_a_model_error_with_the_outcome(chat_server: ChatServer, body: str, kind: str) -> None:
    chat_server.say(body)
    retry = RetryPolicy(attempts=1)
    client = (
        OpenAICompatibleModel("m", chat_server.address, retry=retry)
        if kind == "chat"
        else OllamaModel("m", chat_server.address, retry=retry, context_size=4096)
    )
    with pytest.raises(ModelError) as caught:
        DirectAgent(client).run("Say hi.")
    assert len(str(caught.value)) < 500
    assert vars(caught.value)["outcome"].stop == "failed"


@pytest.mark.parametrize("arguments", [3, 2.5, True, [1], "3", "[" * 90 + "]" * 90, {"a": {"b": None}}])
def test_arguments_of_any_form_are_the_models_mistake(chat_server: ChatServer, arguments: Any) -> None:
    call = {"id": 7, "function": {"name": "add", "arguments": arguments}}
    chat_server.say(completion(None, message={"tool_calls": [call]}), completion("That did not work."))

    def add(a: int) -> int:
        "Add."
        return a

    client = OpenAICompatibleModel("m", chat_server.address, retry=RetryPolicy(attempts=1))
    outcome = LeanAgent(client, tools=(add,), max_steps=2).run("Add.")
    assert outcome.turns[0].reply.tool_calls[0].id == "7"
    assert len(outcome.turns) == 2


@pytest.mark.parametrize(
    "figure", [True, "7", [7], {"a": 7}, 10**400, -(10**400), 1e300, float("inf"), float("nan"), None]
)
def test_a_figure_that_can_be_none_is_not_known(figure: Any) -> None:
    usage = to_usage({"prompt_tokens": figure, "completion_tokens": 2, "cost": figure}, cost=0.5)
    assert (usage.input_tokens, usage.output_tokens, usage.cost) == (None, 2, 0.5)


def test_an_error_in_the_body_is_told_in_its_words() -> None:
    with pytest.raises(ModelError, match="no more today"):
        to_reply({"error": {"message": "no more today"}}, model="m")


@pytest.mark.parametrize("header", ["nan", "Fri, 99 Foo 2026", "Fri, 31 Dec 99999 23:59:59 GMT", "\x00", "-3", "inf"])
def test_a_time_to_wait_of_any_form(header: str) -> None:
    seconds = retry_after(header)
    assert seconds is None or seconds >= 0


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("3", 3.0),
        ("0.5", 0.5),
        ("-1", 0.0),
        ("soon", None),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
    ],
)
def test_the_retry_after_header(header: str | None, seconds: float | None) -> None:
    assert retry_after(header, now=10.0) == seconds


def test_an_answer_is_bounded_before_it_is_unpacked(chat_server: ChatServer) -> None:
    bomb = gzip.compress(b" " * (LONGEST + 1))
    assert len(bomb) < LONGEST // 500
    chat_server.say(bomb.decode("latin-1"), Content_Encoding="gzip")
    client = Http(chat_server.address, headers={}, timeout=20)
    with pytest.raises(Lost):
        client.post("/x", {})
