from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from chat_server import ChatServer, completion
from lazy import needs
from odd_bodies import BROKEN

from rlm_loop import DirectAgent
from rlm_loop.messages import Prompt
from rlm_loop.models import (
    AuthenticationFailed,
    LiteLLMModel,
    ModelError,
    ModelNotFound,
    ModelUnreachable,
    RateLimited,
    RequestRejected,
    RetryPolicy,
)

pytestmark = [needs("litellm", extra="litellm"), pytest.mark.filterwarnings("ignore")]  # LiteLLM's own
ASK = Prompt.ask("hello")


def model(server: ChatServer, name: str = "openai/gpt-5-nano", **options: Any) -> LiteLLMModel:
    options = {"api_base": server.address, "api_key": "sk-test", "retry": RetryPolicy(attempts=1), **options}
    return LiteLLMModel(name, **options)


def test_a_call_with_its_cost(chat_server: ChatServer) -> None:
    chat_server.say(completion("hi", model="gpt-5-nano"))
    reply = model(chat_server).complete(ASK, max_tokens=9)
    assert reply.text == "hi"
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cache_read_tokens) == (7, 2, 5)
    assert reply.usage.cost is not None
    assert 0 < reply.usage.cost < 1e-5
    sent = chat_server.requests[0]
    assert sent["messages"] == [{"role": "user", "content": "hello"}]
    assert {sent.get("max_tokens"), sent.get("max_completion_tokens")} == {None, 9}
    assert "temperature" not in sent


def test_prices_come_from_its_table() -> None:
    price = LiteLLMModel("openai/gpt-5-nano").price
    assert price is not None
    assert 0 < price[0] < price[1] < 1e-5
    assert LiteLLMModel("openai/nothing-like-this").price is None


@pytest.mark.parametrize(
    ("status", "kind", "says"),
    [
        (401, AuthenticationFailed, "api_key"),
        (404, ModelNotFound, "does not exist"),
        (400, RequestRejected, "refused the request"),
        (429, RateLimited, "limits the rate"),
        (500, ModelError, "failed"),
        (503, ModelError, "failed"),
    ],
)
def test_errors_are_ours(chat_server: ChatServer, status: int, kind: type[ModelError], says: str) -> None:
    chat_server.say({"error": {"message": "the\nreason", "type": "x", "code": "y"}}, status=status)
    with pytest.raises(kind, match=says) as caught:
        model(chat_server).complete(ASK)
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
    assert "reason" in str(caught.value)
    assert len(chat_server.requests) == 1  # nobody but us tries again


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN.keys())
def test_what_is_no_completion_is_a_model_error_with_the_outcome(chat_server: ChatServer, body: str) -> None:
    chat_server.say(body)
    with pytest.raises(ModelError) as caught:
        DirectAgent(model(chat_server)).run("Say hi.")
    assert len(str(caught.value)) < 500
    assert vars(caught.value)["outcome"].stop == "failed"


def test_retries_are_ours_and_counted(chat_server: ChatServer, waits: Any) -> None:
    seen, sleep = waits
    chat_server.say({"error": {"message": "slow"}}, status=429, Retry_After="3")
    chat_server.say({"error": {"message": "oops"}}, status=500)
    chat_server.say(completion("at last"))
    retry = RetryPolicy(first=1.0, sleep=sleep, clock=lambda: 0.0, chance=lambda: 0.0)
    reply = model(chat_server, retry=retry).complete(ASK)
    assert (reply.text, reply.waited) == ("at last", 5.0)
    assert seen == [3.0, 2.0]


def test_an_address_where_nobody_is() -> None:
    asked = LiteLLMModel("openai/x", api_base="http://127.0.0.1:9/v1", api_key="k", retry=RetryPolicy(attempts=1))
    with pytest.raises((ModelUnreachable, ModelError)) as caught:
        asked.complete(ASK)
    assert "\n" not in str(caught.value)
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("name", "variable"), [("openai/gpt-5-nano", "OPENAI_API_KEY"), ("anthropic/claude-x", "ANTHROPIC_API_KEY")]
)
def test_a_missing_key_is_named(name: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(AuthenticationFailed, match=variable):
        LiteLLMModel(name).complete(ASK)


def test_a_provider_that_does_not_exist() -> None:
    with pytest.raises(ModelNotFound, match="knows no provider for 'opnai"):
        LiteLLMModel("opnai/gpt-5-nano", retry=RetryPolicy(attempts=1)).complete(ASK)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(ModelError, match=r'pip install -e "\.\[litellm\]"'):
        LiteLLMModel("openai/x").complete(ASK)


@pytest.mark.slow
def test_the_import_prints_nothing_and_asks_nobody() -> None:
    code = (
        "import socket, warnings; warnings.simplefilter('ignore')\n"
        "def no(*a, **k): raise SystemExit('network!')\n"
        "socket.getaddrinfo = no\n"
        "from rlm_loop.models import LiteLLMModel\n"
        "assert LiteLLMModel('openai/gpt-5-nano').price\n"
    )
    environ = {k: v for k, v in os.environ.items() if k != "LITELLM_LOCAL_MODEL_COST_MAP"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environ)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
