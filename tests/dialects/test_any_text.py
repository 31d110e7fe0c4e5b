"""Any text is read by every reader of replies: without an exception or a warning, and in time that grows with it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from growth import grows_in_proportion, parts
from hypothesis import example, given, settings
from hypothesis import strategies as st
from offered import ONE, OTHER, TOOLS

from rlm_loop.actions import CallTool
from rlm_loop.dialects import FunctionCalls, ReActText
from rlm_loop.dialects.fences import read_fences
from rlm_loop.dialects.react import own_words, read_step
from rlm_loop.dialects.reader import (
    code_argument,
    looks_like_refusal,
    read_calls,
    strip_answer_prefix,
    text_argument,
    without_reasoning,
)
from rlm_loop.messages import Reply, ToolCall

F = "```python\n"
#: Pieces of fenced code, of calls, of ReAct's steps, of broken arguments, of answers.
FENCED = (
    "```|````|~~~|python|output|json|\n|\n|\n| |    |\t|\r\n|- |1. |x = 1|\"\"\"|'''|s = |f(|)|\\|#|\x00|�|> "
    "|é|%time|Done.|{|}|if x:|```\n"
)
CALLED = (
    '{|}|[|]|"|\'|"name"|:|"search"|,|{{|}}|"""|\'\'\'|\\|\n|```| |```python\n|run(|a=1|)|<tool_call>|</tool_call>|'
    '<think>|\x00|�|Observation:|"arguments"'
)
STEPPED = (
    "Thought:|Action:|Action Input:|Input:|Observation:|Final Answer:|finish|search|none|[|]|(|)|{|}|\"|'|\n|\n| |**|"
    '```|```python\n|x = 1|#|- |\x00|�|1|{"q": "a"}'
)
BROKEN = '{"code": "|{\'code\': \'\'\'|"|"}|}|\n|\\n|\\|"""|x = 1|f(|)|```|</|`| |<think>|</think>|</thinking>|a'
ANSWERED = "Final Answer|final answer:|**|__|:|\n| |42|# |\r"
PIECES = [*map(parts, (FENCED, STEPPED, BROKEN, ANSWERED)), [ONE, OTHER, *parts(CALLED)]]
TEXTS = st.one_of(st.text(), *(st.lists(st.sampled_from(p), max_size=40).map("".join) for p in PIECES))


@given(TEXTS)
@settings(max_examples=400)
@example("```python\n'''\n```\n'''\n```")
@example('{"name": "search", "arguments": {"a": ' + "9" * 5000 + "}}")
@example("{'name': 'search', 'arguments': {[]: 1}}")
@example('{"name": "search", "arguments": ' + '{"a":' * 5000)
@example("Action: search(" + "(" * 1000)
def test_reading_is_total(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reading, (calls, problems) = read_fences(text), read_calls(text, TOOLS)
        own, code = own_words(text), code_argument(text)
        name, given, _ = read_step(own)
        for dialect, carrier in (
            (FunctionCalls("text"), Reply(f'{{"name": "python", "arguments": {text}')),
            (FunctionCalls("native"), Reply("", (ToolCall("c1", "python", text),), "tool_calls")),
            (ReActText(), Reply(f"Action: python\nAction Input: {text}")),
        ):
            assert dialect.parse_reply(carrier, TOOLS)
        looks_like_refusal(text)
    blocks = (*reading.blocks, *reading.skipped)
    lines = {block.line for block in blocks}
    assert len(lines) == len(blocks)
    assert lines <= set(range(1, text.count("\n") + 2))
    assert all(block.closed or "unclosed fence" in block.notes for block in blocks)
    assert sum(len(block.code) for block in blocks) + len(reading.prose) <= 2 * len(text) + 8
    assert reading == read_fences(text)
    assert all(isinstance(json.loads(call.arguments), dict) for call in calls if isinstance(call, CallTool))
    assert (calls, problems) == read_calls(text, TOOLS)
    assert text.startswith(own)
    assert own_words(own) == own
    assert name or (name, given) == (None, "")
    assert code is None or 0 < code.end <= len(text)
    assert strip_answer_prefix(text) in text
    assert text.endswith(without_reasoning(text))


READERS: dict[str, Callable[[str], Any]] = {
    "fences": read_fences,
    "calls": lambda text: read_calls(text, TOOLS),
    "step": read_step,
    "code": lambda text: code_argument('{"code": "' + text),
    "text": lambda text: text_argument(TOOLS["run"], '{"a": 1, "code": "' + text),
    "reasoning": without_reasoning,
    "answer": strip_answer_prefix,
    "refusal": looks_like_refusal,
}
STEPS = (
    "Action: none\n|Action: search\n|Thought: a\n|Observation| |\n|Final Answer:\n|Action: search(|Action: {|"
    '** | Action:|{"a":|Action: finish[|```\n|# '
)
CALLS = (
    '{|{"|{"a":|[{|{"name":"run",|{"name":"run" x}|{"name":"run" "}|{"name":"run" """|'
    "{'name':'run' '''|"
    '{"name":"fly", "|{"name":"run",,}|{ |"|<tool_call>|run('
)
ARGUMENTS = '"}\n|"}} |} |"|}|\n| |\\|x"}\n|{"code": "'
#: A reader; the text before, again and again, and after.
LONG: list[tuple[str, str, str, str]] = [
    ("fences", "", f"{F}x = f(1)\n```\nprose {'a' * 60}\n", ""),
    ("fences", "", f"{F}x = '''\n{'y' * 70}\n```\n", ""),
    ("fences", "", f"{F}x = 1\n", ""),
    ("fences", F, "(x```\n", ""),
    ("fences", "", "```\n", ""),
    ("fences", "", "`", ""),
    ("fences", F, "(", ""),
    ("fences", F, "-", "1\n```"),
    ("fences", f"{F}x = '''", "\n~~~\n``` x", ""),
    ("fences", "", "- ", ""),
    *[("calls", "", unit, "") for unit in (ONE, "{\n" + " " * 500, *parts(CALLS))],
    *[("step", head, u, "") for u in parts(STEPS) for head in ("", "Action: search\nAction Input: ", "Action: ")],
    *[("code", "", unit, "") for unit in parts(ARGUMENTS)],
    *[("reasoning", "", unit, "") for unit in (*parts(ARGUMENTS), "<think></think>")],
    *[(name, "", u, "") for u in ("Final Answer: ", "**Final Answer**\n", " ", "# ") for name in ("answer", "refusal")],
]


@pytest.mark.parametrize(("name", "head", "unit", "tail"), LONG, ids=range(len(LONG)))
def test_no_text_takes_time_that_grows_with_its_square(name: str, head: str, unit: str, tail: str) -> None:
    grows_in_proportion(READERS[name], unit, head, tail)
