from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from lazy import needs
from upstream import Upstream, completion

from rlm_loop.messages import Prompt, Usage
from rlm_loop.models import AuthenticationFailed, LiteLLMModel, ModelError, ModelNotFound, RateLimited, RequestRejected
from tests.providers.players import ONCE

pytestmark = [needs("litellm", extra="litellm"), pytest.mark.filterwarnings("ignore")]  # LiteLLM's own
ASK = Prompt.ask("hello")


def model(server: Upstream) -> LiteLLMModel:
    return LiteLLMModel("openai/gpt-5-nano", api_base=server.url, api_key="sk-test", retry=ONCE)


def test_a_call_with_its_cost(chat_server: Upstream) -> None:
    chat_server.say(completion("hi", model="gpt-5-nano"))
    reply = model(chat_server).complete(ASK, max_tokens=9)
    usage: Any = reply.usage
    assert (reply.text, replace(usage, cost=None)) == ("hi", Usage(7, 2, 5))
    assert 0 < usage.cost < 1e-5
    sent = chat_server.requests[0]
    assert sent["messages"] == [{"role": "user", "content": "hello"}]
    assert {sent.get("max_tokens"), sent.get("max_completion_tokens")} == {None, 9}
    assert "temperature" not in sent


def test_thinking_that_is_shown_and_not_counted_is_not_known(chat_server: Upstream) -> None:
    thought = {"type": "thinking", "thinking": "one two three", "signature": "s"}
    content = [thought, {"type": "text", "text": "hi"}]
    used = {"input_tokens": 7, "output_tokens": 5}
    said = {"id": "m", "type": "message", "role": "assistant", "model": "claude-haiku-4-5", "content": content}
    chat_server.say({**said, "stop_reason": "end_turn", "usage": used})
    name = "anthropic/claude-haiku-4-5"
    reply = LiteLLMModel(name, api_base=chat_server.url, api_key="sk-test", retry=ONCE).complete(ASK, max_tokens=9)
    assert reply.usage is not None
    assert (reply.text, reply.usage.output_tokens, reply.usage.reasoning_tokens) == ("hi", 5, None)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, AuthenticationFailed), (404, ModelNotFound), (400, RequestRejected), (429, RateLimited), (500, ModelError)],
)
def test_errors_are_ours(chat_server: Upstream, status: int, kind: type[ModelError]) -> None:
    chat_server.say({"error": {"message": "the\nreason", "type": "x", "code": "y"}}, status=status)
    with pytest.raises(kind, match="the reason") as caught:
        model(chat_server).complete(ASK)
    assert (type(caught.value), caught.value.retryable) == (kind, status in (429, 500))
    assert len(chat_server.requests) == 1  # nobody but us tries again


@pytest.mark.parametrize(
    ("name", "more", "kind", "says"),
    [
        ("openai/x", {"api_base": "http://127.0.0.1:9/v1", "api_key": "k"}, ModelError, "openai/x"),
        ("anthropic/claude-x", {}, AuthenticationFailed, "ANTHROPIC_API_KEY"),
        ("opnai/gpt-5-nano", {}, ModelNotFound, "opnai"),
    ],
    ids=["nobody at the address", "no key", "no such provider"],
)
def test_what_cannot_be_asked(monkeypatch: Any, name: str, more: Any, kind: type[ModelError], says: str) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(kind, match=says) as caught:
        LiteLLMModel(name, retry=ONCE, **more).complete(ASK)
    assert (caught.value.retryable, "\n" in str(caught.value)) == (kind is ModelError, False)


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
