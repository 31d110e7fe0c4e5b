"""The function-calling dialect by example: what is read, and what is sent back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from offered import TOOLS

from rlm_loop.actions import Answer, CallTool, Malformed, Note, Observation
from rlm_loop.dialects import Dialect, FunctionCalls, ReActText
from rlm_loop.messages import Reply, ToolCall
from rlm_loop.outcome import Turn

DIALECT = FunctionCalls("text")
#: A dialect, a reply and what is read: a call, a part of what is said to the model, or an answer.
READ: list[tuple[Dialect, str, Any]] = [
    (DIALECT, '{"name": "add", "arguments": {"a": 1, "b": 2}}', ("add", {"a": 1, "b": 2})),
    # a bare string is the one string parameter of a tool that has just that, and nothing for any other tool
    (DIALECT, 'an object {"name": "python", "arguments": "print(1)"}', ("python", {"code": "print(1)"})),
    (DIALECT, "python('print(1)')", ("python", {"code": "print(1)"})),
    (DIALECT, "python(1)", "arguments of python must be a JSON object"),
    (DIALECT, '{"name": "add", "arguments": "1, 2"}', "arguments of add must be a JSON object"),
    (DIALECT, "`final_answer(42)`", ("final_answer", {"answer": 42})),
    (DIALECT, "final_answer(true)", ("final_answer", {"answer": True})),
    # what is no call is text
    (DIALECT, "final_answer: Paris", "final_answer: Paris"),
    (DIALECT, "It is final_answer: 42", "It is final_answer: 42"),
    (DIALECT, "Final Answer: 4", "4"),
    # what was meant as a call is not
    (DIALECT, '{"name": "u", "arguments": {"code": """\nf("""Do.""")\n"""}}', "not valid JSON; inside a JSON string"),
    (DIALECT, "add(1, 2)", "must be given by name"),
    (DIALECT, '{"name": "python", "arguments": {"code": "pri', "unfinished"),
    (DIALECT, '{"name": "python", "arguments": {"code": "print("x""}}', "for a quote and"),
    (DIALECT, "I'm sorry, but I can't help with that.", "Please try"),
    (ReActText(), 'Thought: t\nAction: add\nAction Input: {"a": 1, "b": 2}', ("add", {"a": 1, "b": 2})),
    (ReActText(), "Thought: t\nAction: python\nAction Input: print(1)", ("python", {"code": "print(1)"})),
    (ReActText(), 'Thought: t\nAction: finish\nAction Input: {"answer": [1, 2]}', [1, 2]),
    (ReActText(), "Thought: t\nAction: finish\nAction Input: four", "four"),
    (ReActText(), "Thought: t\nAction: finish", "finish needs the answer"),
    (ReActText(), "Final Answer:", "finish needs the answer"),
    (ReActText(), "Just talking.", "No action found"),
]


@pytest.mark.parametrize(("dialect", "text", "expected"), READ)
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
    [(["a", "a", "a"], ["a", "a_2", "a_3"]), (["", "call_1", None], ["call_1", "call_1_2", "call_3"])],
)
def test_every_native_call_gets_one_result_in_call_order(ids: list[str | None], expected: list[str]) -> None:
    calls = tuple(ToolCall(i, "add", "{oops" if n == 1 else '{"a": 1, "b": 2}') for n, i in enumerate(ids))
    reply = Reply("", calls, "tool_calls")
    seen = tuple(Observation(str(n)) for n in range(3))
    said, *results = DIALECT.format_turn(Turn(1, reply, tuple(DIALECT.parse_reply(reply, TOOLS)), seen))
    assert [c.id for c in said.tool_calls] == [m.tool_call_id for m in results] == expected
    assert [m.text for m in results] == ["0", "1", "2"]
    assert [c.arguments for c in said.tool_calls][1] == "{}"  # what is no JSON is not sent back to a provider
