"""What a server sends in the place of a completion is a `ModelError`, or a reply; never another exception."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from lazy import needs
from upstream import Upstream, completion

from rlm_loop import DirectAgent, LeanAgent
from rlm_loop.messages import Prompt
from rlm_loop.models import LiteLLMModel, Model, ModelError, OllamaModel, OpenAICompatibleModel, RetryPolicy
from rlm_loop.models.http import Http, Lost
from rlm_loop.models.wire import to_usage

ONCE = RetryPolicy(attempts=1)


def own(url: str) -> OpenAICompatibleModel:
    return OpenAICompatibleModel("m", url, retry=ONCE)


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


def message(**parts: Any) -> str:
    return json.dumps({"choices": [{"message": parts}], "message": parts})


BROKEN = {
    "a message that is a list": '{"choices": [{"message": [1]}], "message": [1]}',
    "no choices": '{"choices": null}',
    "choices that are an object": '{"choices": {"0": {}}}',
    "choices that are a text": '{"choices": "abc"}',
    "a choice that is nothing": '{"choices": [null]}',
    "a call that is nothing": message(tool_calls=[None]),
    "calls that are an object": message(tool_calls={"a": 1}),
    "a function that is a list": message(tool_calls=[{"function": [1]}]),
    "content that is a number": message(content=3),
    "content of parts that are none": message(content=[1, [2]]),
    "a number of 5,000 digits": '{"choices": [{"message": {"content": "x"}, "index": ' + "9" * 5000 + "}]}",
    "deep content": message(content="@").replace('"@"', deep(700)),
    "deep arguments": message(tool_calls=[{"function": {"name": "f", "arguments": "@"}}]).replace('"@"', deep(300)),
    "very deep JSON": deep(100_000),
    "no object": "[]",
}
CLIENTS: dict[str, Callable[[str], Model]] = {
    "chat": own,
    "ollama": lambda url: OllamaModel("m", url, retry=ONCE, context_size=4096),
    "litellm": lambda url: LiteLLMModel("openai/gpt-5-nano", api_base=url, api_key="sk-test", retry=ONCE),
}
LITELLM = (needs("litellm", extra="litellm"), pytest.mark.filterwarnings("ignore"))  # LiteLLM's own


@pytest.mark.parametrize("kind", ["chat", "ollama", pytest.param("litellm", marks=LITELLM)])
@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_completion_is_a_model_error_with_the_outcome(chat_server: Upstream, name: str, kind: str) -> None:
    chat_server.say(BROKEN[name])
    with pytest.raises(ModelError) as caught:
        DirectAgent(CLIENTS[kind](chat_server.url)).run("Say hi.")
    assert len(str(caught.value)) < 500
    assert vars(caught.value)["outcome"].stop == "failed"


@pytest.mark.parametrize("arguments", [3, 2.5, True, [1], "3", "[" * 90 + "]" * 90, {"a": {"b": None}}])
def test_arguments_of_any_form_are_the_models_mistake(chat_server: Upstream, arguments: Any) -> None:
    call = {"id": 7, "function": {"name": "add", "arguments": arguments}}
    chat_server.say(completion(None, message={"tool_calls": [call]}), completion("That did not work."))

    def add(a: int) -> int:
        "Add."
        return a

    outcome = LeanAgent(own(chat_server.url), tools=(add,), max_steps=2).run("Add.")
    assert outcome.turns[0].reply.tool_calls[0].id == "7"
    assert len(outcome.turns) == 2


@pytest.mark.parametrize(
    "figure", [True, "7", [7], {"a": 7}, 10**400, -(10**400), 1e300, float("inf"), float("nan"), None]
)
def test_a_figure_that_can_be_none_is_not_known(figure: Any) -> None:
    usage = to_usage({"prompt_tokens": figure, "completion_tokens": 2, "cost": figure})
    assert (usage.input_tokens, usage.output_tokens, usage.cost) == (None, 2, None)


@pytest.mark.parametrize(("header", "seconds"), [("3", 3.0), ("0.5", 0.5), ("-1", None), ("nan", None), ("x", None)])
def test_the_retry_after_header(chat_server: Upstream, header: str, seconds: float | None) -> None:
    chat_server.say({}, status=429, Retry_After=header)
    with pytest.raises(ModelError) as caught:
        own(chat_server.url).complete(Prompt.ask("?"))
    assert caught.value.retry_after == seconds


def test_an_answer_is_bounded(chat_server: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_loop.models.http.LONGEST", 1000)
    chat_server.say("x" * 1001)
    with pytest.raises(Lost, match="more than 1,000 bytes"):
        Http(chat_server.url, headers={}, timeout=20).send("/x", "{}")
