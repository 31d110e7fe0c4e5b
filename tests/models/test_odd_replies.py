"""What a server sends in the place of a completion is a `ModelError`, or a reply; never another exception."""

from __future__ import annotations

from typing import Any

import pytest
from chat_server import ChatServer, completion
from odd_bodies import BROKEN

from rlm_loop import DirectAgent, LeanAgent
from rlm_loop.messages import Prompt
from rlm_loop.models import ModelError, OllamaModel, OpenAICompatibleModel, RetryPolicy
from rlm_loop.models.http import Http, Lost
from rlm_loop.models.wire import to_usage


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
    usage = to_usage({"prompt_tokens": figure, "completion_tokens": 2, "cost": figure})
    assert (usage.input_tokens, usage.output_tokens, usage.cost) == (None, 2, None)


@pytest.mark.parametrize(("header", "seconds"), [("3", 3.0), ("0.5", 0.5), ("-1", None), ("nan", None), ("x", None)])
def test_the_retry_after_header(chat_server: ChatServer, header: str, seconds: float | None) -> None:
    chat_server.say({}, status=429, Retry_After=header)
    with pytest.raises(ModelError) as caught:
        OpenAICompatibleModel("m", chat_server.address, retry=RetryPolicy(attempts=1)).complete(Prompt.ask("?"))
    assert caught.value.retry_after == seconds


def test_an_answer_is_bounded(chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_loop.models.http.LONGEST", 1000)
    chat_server.say("x" * 1001)
    with pytest.raises(Lost, match="more than 1,000 bytes"):
        Http(chat_server.address, headers={}, timeout=20).send("/x", "{}")
