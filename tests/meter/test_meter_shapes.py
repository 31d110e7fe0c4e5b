"""The Responses and Messages shapes: the same request in three APIs is the same prompt, and the same bill."""

from __future__ import annotations

from typing import Any

import pytest
from wires import TOOL, events, post, user  # pyright: ignore

from rlm_loop.messages import Reply, ToolCall
from rlm_loop.meter import metered_endpoint
from rlm_loop.models import ScriptedModel
from rlm_loop.models.base import RateLimited

FUNCTION = TOOL["function"]
CALLS = Reply("I add.", (ToolCall("c1", "add", '{"a": 1}'),), "tool_calls")

CHAT = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Rules."},
        user("1 + 2?"),
        {
            "role": "assistant",
            "content": "I add.",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "3"},
        user("Sure?"),
    ],
    "tools": [TOOL],
    "max_tokens": 50,
}
RESPONSES = {
    "model": "m",
    "instructions": "Rules.",
    "input": [
        user("1 + 2?"),
        {"type": "reasoning", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I add."}]},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "3"},
        {"role": "user", "content": [{"type": "input_text", "text": "Sure?"}]},
    ],
    "tools": [{"type": "function", **FUNCTION}],
    "max_output_tokens": 50,
    "store": False,
}
MESSAGES = {
    "model": "m",
    "system": [{"type": "text", "text": "Rules.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        user("1 + 2?"),
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "I add."},
                {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
            ],
        },
        user([{"type": "tool_result", "tool_use_id": "c1", "content": "3"}, {"type": "text", "text": "Sure?"}]),
    ],
    "tools": [
        {"name": "add", "description": FUNCTION["description"], "input_schema": FUNCTION["parameters"]},
    ],
    "max_tokens": 50,
}
SHAPES = [("/chat/completions", CHAT), ("/responses", RESPONSES), ("/messages", MESSAGES)]


def test_the_same_prompt_whatever_the_shape() -> None:
    model = ScriptedModel(["Yes."] * 3)
    with metered_endpoint(model) as url:
        for path, body in SHAPES:
            response = post(url, body, path)
            assert response.status_code == 200, response.text
    assert len({prompt.digest() for prompt in model.prompts}) == 1
    assert [call.protocol for call in url.meter.calls] == ["chat", "responses", "messages"]
    assert len({call.input_tokens for call in url.meter.calls}) == 1
    assert [call.node for call in url.meter.calls] == ["0"] * 3
    assert url.meter.calls[1].ignored == ("store", "input[].reasoning")
    assert url.meter.calls[2].ignored == ("system[].cache_control", "messages[].thinking")


def served(path: str, body: dict[str, Any], **more: Any) -> Any:
    with metered_endpoint(ScriptedModel([CALLS])) as url:
        response = post(url, {**body, **more}, path)
        assert response.status_code == 200
        return events(response) if more.get("stream") else response.json()


def test_a_response() -> None:
    answer = served("/responses", RESPONSES)
    text, call = answer["output"]
    assert (text["content"][0]["text"], answer["status"], answer["object"]) == ("I add.", "completed", "response")
    assert (call["type"], call["call_id"], call["name"], call["arguments"]) == (
        "function_call",
        "c1",
        "add",
        '{"a": 1}',
    )
    assert answer["usage"]["total_tokens"] == answer["usage"]["input_tokens"] + answer["usage"]["output_tokens"]


def test_a_stream_of_a_response() -> None:
    whole = served("/responses", RESPONSES)
    sent = served("/responses", RESPONSES, stream=True)
    assert [event["sequence_number"] for event in sent] == list(range(len(sent)))
    assert (sent[0]["type"], sent[-1]["type"]) == ("response.created", "response.completed")
    without = ("id", "created_at", "output")
    assert {k: v for k, v in sent[-1]["response"].items() if k not in without} == {
        k: v for k, v in whole.items() if k not in without
    }
    assert [event["delta"] for event in sent if event["type"].endswith("delta")] == ["I add.", '{"a": 1}']


def test_a_response_that_was_cut() -> None:
    with metered_endpoint(ScriptedModel(["word " * 50])) as url:
        answer = post(url, {"input": "Q", "max_output_tokens": 2}, "/responses").json()
    assert (answer["status"], answer["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})


def test_a_message() -> None:
    answer = served("/messages", MESSAGES)
    assert answer["content"] == [
        {"type": "text", "text": "I add."},
        {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
    ]
    assert (answer["type"], answer["role"], answer["stop_reason"]) == ("message", "assistant", "tool_use")
    assert answer["usage"]["cache_read_input_tokens"] == 0


def test_a_stream_of_a_message() -> None:
    sent = served("/messages", MESSAGES, stream=True)
    assert [event["type"] for event in sent] == [
        "message_start",
        *["content_block_start", "content_block_delta", "content_block_stop"] * 2,
        "message_delta",
        "message_stop",
    ]
    assert sent[2]["delta"] == {"type": "text_delta", "text": "I add."}
    assert sent[5]["delta"] == {"type": "input_json_delta", "partial_json": '{"a": 1}'}
    assert sent[-2]["delta"]["stop_reason"] == "tool_use"


def test_what_was_cached_is_not_among_the_input_tokens_of_a_message() -> None:
    with metered_endpoint(ScriptedModel(["a", "b"])) as url:
        said = [user("A question"), {"role": "assistant", "content": "a"}, user("Another")]
        post(url, {"messages": said[:1]}, "/messages")
        usage = post(url, {"messages": said}, "/messages").json()["usage"]
    call = url.meter.calls[1]
    assert usage["cache_read_input_tokens"] == call.cached_tokens
    assert usage["input_tokens"] + usage["cache_read_input_tokens"] == call.input_tokens


@pytest.mark.parametrize("arguments", ["{broken", "[1]", ""])
def test_arguments_that_are_no_object_reach_the_client(arguments: str) -> None:
    with metered_endpoint(ScriptedModel([Reply("", (ToolCall("c", "add", arguments),))])) as url:
        answer = post(url, {"messages": [user("Q")]}, "/messages").json()
    assert answer["content"][0]["input"] == ({"invalid_json": arguments} if arguments else {})


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("/responses", {}, "input is missing"),
    ("/responses", {"input": "Q", "previous_response_id": "resp_1"}, "send the whole input"),
    ("/responses", {"input": [{"type": "web_search_call"}]}, "web_search_call"),
    ("/responses", {"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "text only"),
    ("/responses", {"input": "Q", "tools": [{"type": "file_search"}]}, "no function"),
    ("/messages", {}, "messages is missing"),
    ("/messages", {"messages": [{"role": "system", "content": "x"}]}, "use user or assistant"),
    ("/messages", {"messages": [user([{"type": "image", "source": {}}])]}, "text only"),
    ("/messages", {"messages": [user("x")], "tools": [{"type": "bash_20250124", "name": "bash"}]}, "input_schema"),
]


@pytest.mark.parametrize(("path", "body", "says"), BAD)
def test_bad_requests(path: str, body: dict[str, Any], says: str) -> None:
    with metered_endpoint(ScriptedModel([])) as url:
        response = post(url, body, path)
    assert response.status_code == 400
    error = response.json()["error"]
    assert says in error["message"]
    assert (response.json().get("type"), error["type"]) == (
        "error" if path == "/messages" else None,
        "invalid_request_error",
    )


def test_an_error_in_the_form_of_a_message() -> None:
    with metered_endpoint(ScriptedModel([RateLimited("slow")])) as url:
        response = post(url, {"messages": [user("Q")]}, "/messages")
    assert (response.status_code, response.json()) == (
        429,
        {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}},
    )
