"""The official clients against the meter: what they read is what the model said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from lazy import Lazy, needs
from wires import TOOL, user  # pyright: ignore

from rlm_loop.messages import Reply, ToolCall
from rlm_loop.meter import metered_endpoint
from rlm_loop.models import ScriptedModel
from rlm_loop.models.base import ModelError

pytestmark = needs("openai", extra="litellm")
openai = Lazy("openai")
CALLS = Reply("I add.", (ToolCall("c1", "add", '{"a": 1}'),), "tool_calls")
FUNCTION = {"type": "function", **TOOL["function"]}


@pytest.fixture
def served() -> Iterator[tuple[Any, Any]]:
    script = ScriptedModel([CALLS, ModelError("broken")])
    with metered_endpoint(script) as url, openai.OpenAI(base_url=url, api_key="any") as client:
        yield url, client


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


def test_a_response(served: tuple[Any, Any]) -> None:
    url, client = served
    reply = client.responses.create(model="m", input="1 + 2?", tools=[FUNCTION])
    assert (reply.output_text, reply.output[1].arguments) == ("I add.", '{"a": 1}')
    assert reply.usage.input_tokens == url.meter.calls[0].input_tokens


@pytest.mark.parametrize("named", [True, False])
def test_items_of_a_reply_are_gone_on_from_by_their_ids(named: bool) -> None:
    """As the AI SDK's provider for this API sends a history where the provider stores it."""
    script = ScriptedModel([CALLS, "3."])
    with metered_endpoint(script) as url, openai.OpenAI(base_url=url, api_key="any") as client:
        first = client.responses.create(model="m", input="1 + 2?", tools=[FUNCTION])
        items = [{"type": "item_reference", "id": item.id} if named else item.to_dict() for item in first.output]
        result = {"type": "function_call_output", "call_id": first.output[1].call_id, "output": "3"}
        client.responses.create(model="m", input=[user("1 + 2?"), *items, result], tools=[FUNCTION])
    assert [(m.role, m.text, len(m.tool_calls)) for m in script.prompts[1].messages] == [
        ("user", "1 + 2?", 0),
        ("assistant", "I add.", 1),
        ("tool", "3", 0),
    ]
    assert {call.node for call in url.meter.calls} == {"0"}


def test_a_response_that_streams(served: tuple[Any, Any]) -> None:
    url, client = served
    with client.responses.stream(model="m", input="1 + 2?", tools=[FUNCTION]) as stream:
        whole = stream.get_final_response()
    assert (whole.output_text, whole.output[1].arguments) == ("I add.", '{"a": 1}')
    assert whole.usage.input_tokens == url.meter.calls[0].input_tokens
