"""The function-calling dialect by example: what is read, and what is sent back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from offered import TOOLS

from rlm_loop.actions import Action, Answer, CallTool, Malformed, Note, Observation
from rlm_loop.dialects import Dialect, FunctionCalls, Problem, ReActText
from rlm_loop.messages import Reply, ToolCall
from rlm_loop.outcome import Turn

DIALECT = FunctionCalls("text")


CALLS: list[tuple[str, Any]] = [
    ('{"name": "add", "arguments": {"a": 1, "b": 2}}', ("add", {"a": 1, "b": 2})),
    # a bare string is the one string parameter of a tool that has just that, and nothing for any other tool
    ('a JSON object {"name": "python", "arguments": "print(1)"}', ("python", {"code": "print(1)"})),
    ("python('print(1)')", ("python", {"code": "print(1)"})),
    ("python(1)", "arguments of python must be a JSON object"),
    ("final_answer(42)", ("final_answer", {"answer": 42})),
    ("`final_answer(42)`", ("final_answer", {"answer": 42})),
    ("final_answer(true)", ("final_answer", {"answer": True})),
    # what is no call is text
    ("final_answer: Paris", "final_answer: Paris"),
    ("It is final_answer: 42", "It is final_answer: 42"),
    (
        '```json\n{"name": "unique", "arguments": {"code": """\ndef f():\n    """Do."""\n"""}}\n```',
        "not valid JSON; inside a JSON string",
    ),
    ("add(1, 2)", "must be given by name"),
    ('{"name": "add", "arguments": "1, 2"}', "arguments of add must be a JSON object"),
    ('{"name": "python", "arguments": {"code": "pri', "unfinished"),
    ('{"name": "python", "arguments": {"code": "print("x""}}', "for a quote and"),
    ("I'm sorry, but I can't help with that.", "Please try"),
    ("The answer is 4.", "The answer is 4."),
    ("Final Answer: 4", "4"),
]
STEPS: list[tuple[str, Any]] = [
    ('Thought: t\nAction: add\nAction Input: {"a": 1, "b": 2}', ("add", {"a": 1, "b": 2})),
    ("Thought: t\nAction: python\nAction Input: print(1)", ("python", {"code": "print(1)"})),
    ('Thought: t\nAction: finish\nAction Input: {"answer": 4}', 4),
    ('Thought: t\nAction: finish\nAction Input: {"answer": [1, 2]}', [1, 2]),
    ("Thought: t\nAction: finish\nAction Input: four", "four"),
    ("Thought: t\nAction: finish", "finish needs the answer"),
    ("Just talking.", "No action found"),
]


@pytest.mark.parametrize(
    ("dialect", "text", "expected"), [*((DIALECT, *case) for case in CALLS), *((ReActText(), *case) for case in STEPS)]
)
def test_what_is_read_out_of_text(dialect: Dialect, text: str, expected: Any) -> None:
    (action,) = dialect.parse_reply(Reply(text), TOOLS)
    if isinstance(action, CallTool):
        assert (action.name, json.loads(action.arguments)) == expected
        assert action.lenient
    elif isinstance(action, Malformed):
        assert expected in action.reason
        assert (Note.REFUSAL in action.notes) == ("sorry" in text)
    else:
        assert isinstance(action, Answer)
        assert action.value == expected


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["a", "b", "c"], ["a", "b", "c"]),
        (["a", "a", "a"], ["a", "a_2", "a_3"]),
        ([None, None, None], ["call_1", "call_2", "call_3"]),
        (["", "call_1", None], ["call_1", "call_1_2", "call_3"]),
    ],
)
def test_every_native_call_gets_one_result_in_call_order(ids: list[str | None], expected: list[str]) -> None:
    calls = tuple(ToolCall(i, "add", "{oops" if n == 1 else '{"a": 1, "b": 2}') for n, i in enumerate(ids))
    reply = Reply("", calls, "tool_calls")
    actions: tuple[Action, ...] = tuple(DIALECT.parse_reply(reply, TOOLS))
    turn = Turn(1, reply, actions, tuple(Observation(str(n)) for n in range(3)))
    said, *results = DIALECT.format_turn(turn)
    assert [c.id for c in said.tool_calls] == [m.tool_call_id for m in results] == expected
    assert [m.text for m in results] == ["0", "1", "2"]
    assert [c.arguments for c in said.tool_calls][1] == "{}"  # what is no JSON is not sent back to a provider


def test_presentations_differ_only_in_how_tools_are_shown() -> None:
    native, text, constrained = (
        FunctionCalls(p).format_task(Problem("Q"), TOOLS) for p in ("native", "text", "constrained")
    )
    assert [m.text for m in native.messages] == ["Q"]
    assert [t["function"]["name"] for t in native.tools] == [*TOOLS]
    assert text.messages == constrained.messages
    assert text.tools == constrained.tools == ()
    assert text.reply_schema is None
    assert constrained.reply_schema is not None
    assert [c["properties"]["name"]["const"] for c in constrained.reply_schema["anyOf"]] == list(TOOLS)
    assert "- add(a: int, b: int) -> int: Add." in text.messages[0].text


def test_where_only_a_call_ends_the_run_text_is_no_answer() -> None:
    dialect = FunctionCalls("text", text_answers=False)
    assert dialect.parse_reply(Reply("It is 42."), TOOLS) == [Malformed("No tool was called.")]
    call = '{"name": "final_answer", "arguments": {"answer": 42}}'
    assert isinstance(dialect.parse_reply(Reply(call), TOOLS)[0], CallTool)
