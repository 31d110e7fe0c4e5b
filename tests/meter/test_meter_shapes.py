"""The four APIs: the same request in each is the same prompt by cause, and what only one of them has is counted.

And the first request of each coding agent, as it was on the wire: structure and names are theirs, all texts are filler
(`§9205§` stands for so many characters of it).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from upstream import ANY, Answer, upstream
from wires import CALL, TOOL, post, user  # pyright: ignore

from rlm_loop.meter import metered_endpoint
from rlm_loop.models import ScriptedModel

FUNCTION = TOOL["function"]

CHAT = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Rules."},
        user("1 + 2?"),
        {"role": "assistant", "content": "I add.", "tool_calls": [CALL]},
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
I_ADD = {"type": "text", "text": "I add."}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "3"}
MESSAGES = {
    "model": "m",
    "system": [{"type": "text", "text": "Rules.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        user("1 + 2?"),
        {"role": "assistant", "content": [I_ADD, {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}]},
        user([RESULT, {"type": "text", "text": "Sure?"}]),
    ],
    "tools": [{"name": "add", "description": FUNCTION["description"], "input_schema": FUNCTION["parameters"]}],
    "max_tokens": 50,
}
GEMINI_CALL = {"functionCall": {"id": "c1", "name": "add", "args": {"a": 1}}}
GEMINI_RESULT = {"functionResponse": {"id": "c1", "name": "add", "response": {"output": "3"}}}
DECLARED = {"name": "add", "description": FUNCTION["description"], "parametersJsonSchema": FUNCTION["parameters"]}
GEMINI = {
    "systemInstruction": {"parts": [{"text": "Rules."}]},
    "contents": [
        {"role": "user", "parts": [{"text": "1 + 2?"}]},
        {"role": "model", "parts": [{"text": "I add."}, GEMINI_CALL]},
        {"role": "user", "parts": [GEMINI_RESULT, {"text": "Sure?"}]},
    ],
    "tools": [{"functionDeclarations": [DECLARED]}],
    "generationConfig": {"maxOutputTokens": 50},
}
GEMINI_PATH = "beta/models/m:generateContent"  # after /v1
SHAPES = [("/chat/completions", CHAT), ("/responses", RESPONSES), ("/messages", MESSAGES), (GEMINI_PATH, GEMINI)]


def causes_of(path: str, body: dict[str, Any]) -> dict[tuple[str, str], int]:
    """The tokens of a request that went through and was read, counted by a tokenizer: they sum to the bill."""
    with upstream(ANY) as up, metered_endpoint(forward=up.url, counter=ScriptedModel([])) as url:
        assert post(url, body, path).status_code == 200
        (call,), rows = url.meter.calls, list(url.meter.figures.rows())
    assert (call.unread, sum(row["tokens"] for row in rows)) == ("", call.input_tokens)
    return {(row["cause"], row["detail"]): row["tokens"] for row in rows}


@pytest.mark.parametrize(("path", "body"), SHAPES[1:])
def test_the_same_prompt_whatever_the_shape(path: str, body: dict[str, Any]) -> None:
    assert causes_of(path, body) == causes_of(*SHAPES[0])


SPACE = {"type": "namespace", "name": "agents", "tools": [{"type": "function", **FUNCTION}]}
ADDED = {"type": "additional_tools", "role": "developer", "tools": [SPACE]}
PATCH = {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "*** Begin"}
PATCHED = {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"}
GRAMMAR = {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": "start: A"}}
CUSTOM = {"input": [user("Fix it."), PATCH, PATCHED], "tools": [GRAMMAR]}
THOUGHT = {"role": "assistant", "content": [{"type": "thinking", "thinking": "so many words", "signature": "s"}]}
GOOGLES = {"role": "model", "parts": [{"text": "so many", "thought": True}]}
UNKNOWN = {"type": "custom", "custom": {"name": "p"}}
MIDST = {"role": "system", "content": [{"type": "text", "text": "Be brief, and why."}]}
#: What only one API has, and tools beside functions, which take plain text or are run by the provider.
OWN: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    ("/messages", {"messages": [user("Q"), THOUGHT]}, [("assistant", "thinking")]),
    (GEMINI_PATH, {"contents": [{"parts": [{"text": "Q"}]}, GOOGLES]}, [("assistant", "thinking")]),
    ("/messages", {"messages": [user("Q"), MIDST]}, [("system", "")]),
    ("/responses", {"input": [ADDED, user("1 + 2?")]}, [("tool_schema", "agents__add")]),
    ("/responses", CUSTOM, [("assistant", ""), ("tool_schema", "patch"), ("tool_result", "patch")]),
    ("/chat/completions", {**CHAT, "tools": [UNKNOWN]}, [("tool_schema", "custom")]),
    ("/messages", {**MESSAGES, "tools": [{"type": "bash_20250124", "name": "bash"}]}, [("tool_schema", "bash")]),
    (GEMINI_PATH, {**GEMINI, "tools": [{"googleSearch": {}}]}, [("tool_schema", "googleSearch")]),
]


@pytest.mark.parametrize(("path", "body", "expected"), OWN)
def test_what_only_one_api_has_is_told_apart(path: str, body: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert {*expected} <= {cause for cause, tokens in causes_of(path, body).items() if tokens}


@pytest.mark.parametrize(
    "before", [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}, {"prompt": {"id": "pmpt_1"}}]
)
def test_what_the_provider_keeps_is_unattributed(before: dict[str, Any]) -> None:
    with upstream(ANY) as up, metered_endpoint(forward=up.url) as url:
        assert post(url, {"input": "Q", **before}, "/responses").status_code == 200
        assert url.meter.calls[0].unread == ""
        assert ("unattributed", "previous_response") in {(r["cause"], r["detail"]) for r in url.meter.figures.rows()}


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
            assert post(url, {"contents": contents}, GEMINI_PATH).status_code == 200
    turn = next(e for e in url.meter.sessions["default"].trace.events if e["event"] == "turn")
    assert [one["text"] for one in turn["observations"]] == ["one", "two"]


REQUESTS = Path(__file__).parent / "agents"
_FILLER = "filler words say nothing. "
ENVIRONMENT, REMINDER = "scaffold:environment", "scaffold:reminder"
#: How many tools each offers, and what is told apart beside them.
EXPECTED: dict[str, tuple[int, set[str]]] = {
    "claude_code": (12, {"system", "task", REMINDER, ENVIRONMENT}),  # system text among the messages, a deferred tool
    "cline": (25, {"system", "task", ENVIRONMENT}),
    "codex": (11, {"system", "task", ENVIRONMENT}),  # its tools stand among the items, and run JavaScript
    "codex_tools": (10, {"system", "task", ENVIRONMENT}),  # a tool with a grammar, tools that the provider runs
    "codex_unknown_model": (13, {"system", "task", ENVIRONMENT}),  # tools in a namespace
    "gemini_cli": (15, {"system", "task", ENVIRONMENT}),
    "opencode": (10, {"system", "task", ENVIRONMENT}),
    "pi": (4, {"system", "task"}),
    "qwen_code": (14, {"system", "task", REMINDER, ENVIRONMENT}),
}


@pytest.mark.parametrize("name", sorted({*EXPECTED, *(path.stem for path in REQUESTS.glob("*.json"))}))
def test_the_first_request_of_an_agent_is_read_and_told_apart(name: str) -> None:
    recorded = (REQUESTS / f"{name}.json").read_text("utf-8")
    found = json.loads(re.sub(r"§(\d+)§", lambda size: (_FILLER * 1000)[: int(size[1])], recorded))
    rows, (tools, causes) = causes_of(found["path"], found["body"]), EXPECTED[name]
    assert {cause for cause, _ in rows} == {*causes, "tool_schema", "template", "unattributed"}
    assert len([detail for cause, detail in rows if cause == "tool_schema"]) == tools
