from __future__ import annotations

from typing import Any

import pytest
from chat_server import ChatServer

from rlm_loop.accounting import Price
from rlm_loop.messages import Prompt, Reply, ToolCall, Usage, say
from rlm_loop.models import OpenAICompatibleModel


def told(server: ChatServer, message: dict[str, Any], finish: str | None, stated: Any, **options: Any) -> Reply:
    server.say({"choices": [{"message": message, "finish_reason": finish}], "usage": stated})
    model = OpenAICompatibleModel("m", server.address, **options)
    return model.complete(Prompt((say("user", "Q", "task"),)))


CALL = {"id": "a", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}


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
        ({"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"text": "b"}]}, "stop", Reply("ab")),
        ({"tool_calls": [CALL]}, "tool_calls", Reply("", (ToolCall("a", "add", '{"a": 1}'),), "tool_calls")),
        ({"tool_calls": [CALL]}, None, Reply("", (ToolCall("a", "add", '{"a": 1}'),), "tool_calls")),
        # cut off is cut off, also with calls: such a reply is never executed
        ({"tool_calls": [CALL]}, "length", Reply("", (ToolCall("a", "add", '{"a": 1}'),), "length")),
        ({"tool_calls": [{"function": {"name": "f"}}]}, None, Reply("", (ToolCall(None, "f", ""),), "tool_calls")),
        (
            {"tool_calls": [{"id": "", "function": {"name": "f", "arguments": {"ä": [1]}}}]},
            "tool_calls",
            Reply("", (ToolCall(None, "f", '{"ä": [1]}'),), "tool_calls"),
        ),
    ],
)
def test_what_a_body_says(
    chat_server: ChatServer, message: dict[str, Any], finish: str | None, expected: Reply
) -> None:
    reply = told(chat_server, message, finish, None)
    said = (expected.text, expected.tool_calls, expected.finish_reason, Usage(None, None))
    assert (reply.text, reply.tool_calls, reply.finish_reason, reply.usage) == said


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        (None, Usage(None, None, None)),
        ({}, Usage(None, None, None)),
        ({"prompt_tokens": 9, "completion_tokens": 0}, Usage(9, 0, None)),
        ({"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": None}, Usage(9, 1, None)),
        ({"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 0}}, Usage(9, 1, 0)),
        ({"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4}, Usage(9, 1, 4)),
        ({"prompt_tokens": 9, "completion_tokens": 1, "cost": 0.5}, Usage(9, 1, None, cost=0.5)),
        (
            {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4, "cache_creation_tokens": 3}},
            Usage(9, None, 4, cache_write_tokens=3),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 0}},
            Usage(9, 5, reasoning_tokens=0),
        ),
    ],
)
def test_what_is_not_stated_is_none(chat_server: ChatServer, stated: Any, expected: Usage) -> None:
    assert told(chat_server, {"content": "x"}, "stop", stated).usage == expected


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2}, 16.0),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 5, "cache_creation_tokens": 2},
            },
            13.5,
        ),
        ({"prompt_tokens": 10, "completion_tokens": 2, "cost": 1.0}, 1.0),
        ({"completion_tokens": 2}, None),
    ],
)
def test_a_price_fills_in_a_cost_that_was_not_stated(chat_server: ChatServer, stated: Any, expected: Any) -> None:
    price = Price(1e6, 3e6, cached=1e5, cache_write=2e6)  # per million tokens
    usage = told(chat_server, {"content": "x"}, "stop", stated, price=price).usage
    assert usage is not None
    assert usage.cost == expected
