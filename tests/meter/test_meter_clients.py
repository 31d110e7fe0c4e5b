"""OpenAI's client against a model that the meter serves: what it reads is what the model said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from lazy import Lazy, needs
from wires import TOOL, user  # pyright: ignore

from rlm_loop.messages import Reply, ToolCall
from rlm_loop.meter import metered_endpoint
from rlm_loop.models import ModelError, ScriptedModel

pytestmark = needs("openai", extra="litellm")
openai = Lazy("openai")
CALLS = Reply("I add.", (ToolCall("c1", "add", '{"a": 1}'),), "tool_calls")


@pytest.fixture
def served() -> Iterator[tuple[Any, Any]]:
    script = ScriptedModel([CALLS, ModelError("broken")])
    with metered_endpoint(script) as url, openai.OpenAI(base_url=url, api_key="any") as client:
        yield url, client


@pytest.mark.slow
def test_chat(served: tuple[Any, Any]) -> None:
    url, client = served
    reply = client.chat.completions.create(model="m", messages=[user("1 + 2?")], tools=[TOOL])
    message = reply.choices[0].message
    assert (message.content, message.tool_calls[0].function.arguments) == ("I add.", '{"a": 1}')
    assert reply.usage.prompt_tokens == url.meter.calls[0].input_tokens
    with pytest.raises(openai.InternalServerError, match="broken"):
        client.chat.completions.create(model="m", messages=[user("again")])
    assert len(url.meter.calls) == 2  # it was told not to try again


def test_a_chat_that_streams(served: tuple[Any, Any]) -> None:
    url, client = served
    with client.chat.completions.stream(
        model="m", messages=[user("1 + 2?")], tools=[TOOL], stream_options={"include_usage": True}
    ) as stream:
        whole = stream.get_final_completion()
    message = whole.choices[0].message
    assert (message.content, message.tool_calls[0].function.arguments) == ("I add.", '{"a": 1}')
    assert whole.usage.prompt_tokens == url.meter.calls[0].input_tokens
