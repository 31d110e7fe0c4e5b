"""The Responses and Messages shapes: the same request in three APIs is the same prompt, and the same bill."""

from __future__ import annotations

from typing import Any

import pytest
from upstream import Answer, upstream
from wires import TOOL, events, post, user  # pyright: ignore

from rlm_loop.messages import Prompt, Reply, ToolCall
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
GEMINI = {
    "systemInstruction": {"parts": [{"text": "Rules."}]},
    "contents": [
        {"role": "user", "parts": [{"text": "1 + 2?"}]},
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True},
                {"text": "I add."},
                {"functionCall": {"id": "c1", "name": "add", "args": {"a": 1}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "c1", "name": "add", "response": {"output": "3"}}},
                {"text": "Sure?"},
            ],
        },
    ],
    "tools": [
        {
            "functionDeclarations": [
                {
                    "name": "add",
                    "description": FUNCTION["description"],
                    "parametersJsonSchema": FUNCTION["parameters"],
                }
            ]
        }
    ],
    "generationConfig": {"maxOutputTokens": 50},
}
GEMINI_PATH = "beta/models/m:generateContent"  # after /v1
SHAPES = [("/chat/completions", CHAT), ("/responses", RESPONSES), ("/messages", MESSAGES), (GEMINI_PATH, GEMINI)]


def test_the_same_prompt_whatever_the_shape() -> None:
    model = ScriptedModel(["Yes."] * len(SHAPES))
    with metered_endpoint(model) as url:
        for path, body in SHAPES:
            response = post(url, body, path)
            assert response.status_code == 200, response.text
    assert len({prompt.digest() for prompt in model.prompts}) == 1
    assert [call.protocol for call in url.meter.calls] == ["chat", "responses", "messages", "gemini"]
    assert len({call.input_tokens for call in url.meter.calls}) == 1
    assert [call.node for call in url.meter.calls] == ["0"] * len(SHAPES)
    assert url.meter.calls[1].ignored == ("store",)
    assert [call.ignored for call in url.meter.calls[2:]] == [("thinking",), ("thinking",)]


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
    ("/responses", {"input": [{"type": "item_reference"}]}, "previous_response"),
    ("/responses", {"input": "Q", "conversation": "conv_1"}, "not kept here"),
    ("/responses", {"input": [{"type": "message", "role": "robot"}]}, "'robot'"),
    ("/responses", {"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "text only"),
    ("/responses", {"input": "Q", "tools": ["file_search"]}, "tools[0] is no tool"),
    ("/messages", {}, "messages is missing"),
    ("/messages", {"messages": [{"role": "robot", "content": "x"}]}, "use user, assistant, system"),
    ("/messages", {"messages": [user([{"type": "image", "source": {}}])]}, "text only"),
    (GEMINI_PATH, {}, "contents is missing"),
    (GEMINI_PATH, {"contents": [{"role": "robot"}]}, "use user or model"),
    (GEMINI_PATH, {"contents": [{"parts": [{"inlineData": {"mimeType": "image/png"}}]}]}, "has an image"),
]


@pytest.mark.parametrize(("path", "body", "says"), BAD)
def test_bad_requests(path: str, body: dict[str, Any], says: str) -> None:
    with metered_endpoint(ScriptedModel([])) as url:
        response = post(url, body, path)
    assert response.status_code == 400
    error = response.json()["error"]
    assert says in error["message"]
    assert response.json().get("type") == ("error" if path == "/messages" else None)
    assert error.get("type", error.get("status")) in ("invalid_request_error", "INVALID_ARGUMENT")


def test_an_error_in_the_form_of_a_message() -> None:
    with metered_endpoint(ScriptedModel([RateLimited("slow")])) as url:
        response = post(url, {"messages": [user("Q")]}, "/messages")
    assert (response.status_code, response.json()) == (
        429,
        {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}},
    )


def test_a_gemini_response() -> None:
    answer = served(GEMINI_PATH, GEMINI)
    (candidate,) = answer["candidates"]
    assert candidate["content"]["parts"] == [
        {"text": "I add."},
        {"functionCall": {"id": "c1", "name": "add", "args": {"a": 1}}},
    ]
    usage = answer["usageMetadata"]
    assert usage["totalTokenCount"] == usage["promptTokenCount"] + usage["candidatesTokenCount"]
    assert (answer["modelVersion"], candidate["finishReason"]) == ("m", "STOP")


def test_a_stream_of_a_gemini_response() -> None:
    with metered_endpoint(ScriptedModel([CALLS])) as url:
        (sent,) = events(post(url, GEMINI, "beta/models/m:streamGenerateContent?alt=sse"))
    assert [next(iter(part)) for part in sent["candidates"][0]["content"]["parts"]] == ["text", "functionCall"]
    assert url.meter.calls[0].stream


#: What coding agents send beside functions: tools that the provider runs, groups of tools, tools that take plain text.
TOOLS = {
    "/chat/completions": [TOOL, {"type": "custom", "custom": {"name": "patch"}}],
    "/responses": [
        {"type": "function", **FUNCTION},
        {"type": "namespace", "name": "agents", "tools": [{"type": "function", **FUNCTION}]},
        {"type": "web_search", "external_web_access": False},
        {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": "start: A"}},
    ],
    "/messages": [{"name": "add", "input_schema": FUNCTION["parameters"]}, {"type": "bash_20250124", "name": "bash"}],
    GEMINI_PATH: [*GEMINI["tools"], {"googleSearch": {}}],
}


@pytest.mark.parametrize(("path", "body"), SHAPES)
def test_tools_of_every_kind_are_taken_and_counted(path: str, body: dict[str, Any]) -> None:
    model = ScriptedModel(["Yes.", "Yes."])
    with metered_endpoint(model) as url:
        for tools in (body["tools"], TOOLS[path]):
            response = post(url, {**body, "tools": tools}, path)
            assert response.status_code == 200, response.text
    plain, more = (prompt.tools for prompt in model.prompts)
    assert len(more) == (4 if path == "/responses" else 2)
    assert len(plain) == 1
    rows = [row for row in url.meter.figures.rows() if row["cause"] == "tool_schema"]
    first, second = (sum(row["tokens"] for row in rows if row["call"] == call) for call in (1, 2))
    assert second > first > 0


def test_a_custom_tool_is_called_with_plain_text_and_its_call_is_read_again() -> None:
    patch = Reply("", (ToolCall("c1", "patch", '{"input": "*** Begin"}'),), "tool_calls")
    model = ScriptedModel([patch, "Done."])
    body = {"input": [user("Fix it.")], "tools": TOOLS["/responses"]}
    with metered_endpoint(model) as url:
        (item,) = post(url, body, "/responses").json()["output"]
        assert (item["type"], item["input"]) == ("custom_tool_call", "*** Begin")
        result = {"type": "custom_tool_call_output", "call_id": item["call_id"], "output": "ok"}
        response = post(url, {**body, "input": [*body["input"], item, result]}, "/responses")
        assert response.status_code == 200, response.text
    call, told = model.prompts[1].messages[1:]
    assert (call.tool_calls[0].name, call.tool_calls[0].arguments, told.role, told.text) == (
        *("patch", "*** Begin"),
        *("tool", "ok"),
    )
    assert {c.node for c in url.meter.calls} == {"0"}


def test_tools_that_stand_among_the_items_and_a_call_of_one_in_a_namespace() -> None:
    given = {"type": "namespace", "name": "agents", "tools": [{"type": "function", **FUNCTION}]}
    body = {"input": [{"type": "additional_tools", "role": "developer", "tools": [given]}, user("1 + 2?")]}
    model = ScriptedModel([Reply("", (ToolCall("c1", "agents__add", "{}"),), "tool_calls")])
    with metered_endpoint(model) as url:
        answer = post(url, body, "/responses").json()
    assert [(item["namespace"], item["name"]) for item in answer["output"]] == [("agents", "add")]
    assert [tool["function"]["name"] for tool in model.prompts[0].tools] == ["agents__add"]


def test_system_text_in_the_midst_of_messages() -> None:
    with metered_endpoint(ScriptedModel(["Yes."])) as url:
        said = [user("Q"), {"role": "system", "content": [{"type": "text", "text": "Be brief, and do say why."}]}]
        assert post(url, {"messages": said, "max_tokens": 9}, "/messages").status_code == 200
    assert sum(row["tokens"] for row in url.meter.figures.rows() if row["cause"] == "system") > 0


def test_the_form_of_a_message_is_a_schema() -> None:
    model = ScriptedModel(["{}"])
    form = {"format": {"type": "json_schema", "schema": FUNCTION["parameters"]}, "effort": "low"}
    with metered_endpoint(model) as url:
        post(url, {"messages": [user("Q")], "max_tokens": 9, "output_config": form}, "/messages")
    assert model.prompts[0].reply_schema == FUNCTION["parameters"]
    assert url.meter.calls[0].not_applied == {"output_config": {"effort": "low"}}


def test_a_messages_usage_has_numbers_where_none_are_known() -> None:
    """Both are numbers in the types of the anthropic package."""

    class Silent:
        name = "silent"

        def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
            return Reply("Hello.")

    with metered_endpoint(Silent()) as url:
        answer = post(url, {"messages": [user("Q")], "max_tokens": 9}, "/messages").json()
    assert answer["usage"] == {"input_tokens": 0, "output_tokens": 0}
    assert url.meter.calls[0].input_tokens is None


def test_calls_of_one_function_without_ids_have_their_own_results() -> None:
    """Gemini's calls go by their name where they have no id, and their results come in the same order."""
    calls = [{"functionCall": {"name": "add", "args": {"a": a}}} for a in (1, 2)]
    results = [{"functionResponse": {"name": "add", "response": {"output": said}}} for said in ("one", "two")]
    asked = {"role": "user", "parts": [{"text": "Add."}]}
    first = {"candidates": [{"content": {"role": "model", "parts": calls}}], "usageMetadata": {"promptTokenCount": 9}}
    last = {"candidates": [{"content": {"role": "model", "parts": [{"text": "3"}]}}]}
    history = [asked, {"role": "model", "parts": calls}, {"role": "user", "parts": results}]
    with upstream(Answer.of(first), Answer.of(last)) as up, metered_endpoint(forward=up.url) as url:
        for contents in (history[:1], history):
            assert post(url, {"contents": contents}, "beta/models/m:generateContent").status_code == 200
    turn = next(e for e in url.meter.sessions["default"].record().events if e["event"] == "turn")
    assert [one["text"] for one in turn["observations"]] == ["one", "two"]
