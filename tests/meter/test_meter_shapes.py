"""The four APIs: the same request in each is the same prompt by cause, and what only one of them has is counted."""

from __future__ import annotations

from typing import Any

import pytest
from upstream import ANY, Answer, upstream
from wires import TOOL, post, user  # pyright: ignore

from rlm_loop.meter import metered_endpoint
from rlm_loop.models import ScriptedModel

FUNCTION = TOOL["function"]

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


def rows_of(path: str, *bodies: dict[str, Any]) -> list[Any]:
    """The rows of requests that went through, counted by a tokenizer; one conversation, all of it read."""
    with upstream(ANY) as up, metered_endpoint(forward=up.url, counter=ScriptedModel([])) as url:
        for body in bodies:
            assert post(url, body, path).status_code == 200
        rows = list(url.meter.figures.rows())
        assert [(call.node, call.unread) for call in url.meter.calls] == [("0", "")] * len(bodies)
    return rows


def causes_of(path: str, body: dict[str, Any]) -> dict[tuple[str, str], int]:
    return {(row["cause"], row["detail"]): row["tokens"] for row in rows_of(path, body)}


@pytest.mark.parametrize(("path", "body"), SHAPES[1:])
def test_the_same_prompt_whatever_the_shape(path: str, body: dict[str, Any]) -> None:
    assert causes_of(path, body) == causes_of(*SHAPES[0])


@pytest.mark.parametrize(
    ("path", "body", "more"),
    [
        ("/messages", {"messages": [user("Q")]}, {"type": "thinking", "thinking": "so many words", "signature": "s"}),
        (GEMINI_PATH, {"contents": [{"parts": [{"text": "Q"}]}]}, {"text": "so many words", "thought": True}),
    ],
)
def test_a_thought_that_is_sent_back_is_told_apart(path: str, body: Any, more: Any) -> None:
    part = "parts" if path == GEMINI_PATH else "content"
    role = "model" if path == GEMINI_PATH else "assistant"
    (name, said), *_ = body.items()
    assert causes_of(path, {name: [*said, {"role": role, part: [more]}]})["assistant", "thinking"] > 0


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
def test_tools_of_every_kind_are_counted(path: str, body: dict[str, Any]) -> None:
    tools = {
        detail: n
        for (cause, detail), n in causes_of(path, {**body, "tools": TOOLS[path]}).items()
        if cause == "tool_schema"
    }
    assert len(tools) == (4 if path == "/responses" else 2)
    assert all(tools.values())


def test_tools_that_stand_among_the_items_are_in_their_namespace() -> None:
    given = {"type": "namespace", "name": "agents", "tools": [{"type": "function", **FUNCTION}]}
    body = {"input": [{"type": "additional_tools", "role": "developer", "tools": [given]}, user("1 + 2?")]}
    assert causes_of("/responses", body)["tool_schema", "agents__add"] > 0


def test_a_custom_tools_call_and_its_result_are_read() -> None:
    call = {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "*** Begin"}
    result = {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"}
    causes = causes_of("/responses", {"input": [user("Fix it."), call, result], "tools": TOOLS["/responses"]})
    assert causes["assistant", ""] > 0
    assert causes["tool_result", "patch"] > 0


@pytest.mark.parametrize(
    "before", [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}, {"prompt": {"id": "pmpt_1"}}]
)
def test_what_the_provider_keeps_is_unattributed(before: dict[str, Any]) -> None:
    with upstream(ANY) as up, metered_endpoint(forward=up.url) as url:
        assert post(url, {"input": "Q", **before}, "/responses").status_code == 200
        assert url.meter.calls[0].unread == ""
        assert ("unattributed", "previous_response") in {(r["cause"], r["detail"]) for r in url.meter.figures.rows()}


def test_system_text_in_the_midst_of_messages() -> None:
    said = [user("Q"), {"role": "system", "content": [{"type": "text", "text": "Be brief, and do say why."}]}]
    assert causes_of("/messages", {"messages": said})["system", ""] > 0


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
    turn = next(e for e in url.meter.sessions["default"].trace.events if e["event"] == "turn")
    assert [one["text"] for one in turn["observations"]] == ["one", "two"]
