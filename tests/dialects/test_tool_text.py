from __future__ import annotations

import json
from typing import Any

import pytest
from growth import parts
from hypothesis import given
from hypothesis import strategies as st
from offered import ONE, OTHER, TOOLS, F

from rlm_loop.actions import CallTool
from rlm_loop.dialects.reader import read_calls


def read(text: str) -> list[tuple[str, Any]]:
    calls, _ = read_calls(text, TOOLS)
    return [(call.name, json.loads(call.arguments)) for call in calls if isinstance(call, CallTool)]


FRAMES = parts(
    "I will search: {} and then answer.|```python\n{}\n```|```tool_call\r\n{}\r\n```|```json {}```|<tools>{}</tools>|"
    "[TOOL_CALLS] [{}]|[\n  {}\n]|{}}\n|{}\n<tool_response>\n3\n</tool_response>\n{}|{}\nObservation: 3\n{}|"
    'Braces {like} {"this"} are no calls.\n{}'
)


@pytest.mark.parametrize(
    "text",
    [
        *[frame.replace("{}", ONE) for frame in FRAMES],
        '{"name": "search", "arguments": {"q": "a",},}',
        '{"name": "search", "arguments": {"q": """a"""}}',
        '{"name": "search", "arguments": {"q": "a"}',
        '{"arguments": {"q": "a"}, "name": "search", "id": "x"}',
        '{"name": "search", "q": "a"}',
        '{"name": "search", "arguments": "{\\"q\\": \\"a\\"}"}',
        *[ONE.replace("name", key) for key in ("tool", "function", "action", "toolName")],
        *[ONE.replace("arguments", key) for key in ("args", "parameters", "input", "action_input")],
        "search(q='a')",
    ],
)
def test_one_call(text: str) -> None:
    assert read(text) == [("search", {"q": "a"})]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{ONE}\n{ONE.replace('search', 'run')}", [("search", {"q": "a"}), ("run", {"q": "a"})]),
        (f"{F}python\nrun(a=1)\n{F}\n{F}python\nrun(b=[2])\n{F}", [("run", {"a": 1}), ("run", {"b": [2]})]),
        ('{"name": "run", "arguments": {"code": "a\n\tb"}}', [("run", {"code": "a\n\tb"})]),
        ('{"name": "run", "arguments": {"code": "x = {}\\n```\\n"}}', [("run", {"code": "x = {}\n```\n"})]),
        ('{"name": "run", "arguments": {"p": "\\d+"}}', [("run", {"p": "\\d+"})]),
        ("{'name': 'run', 'arguments': {'x': None, 'y': true}}", [("run", {"x": None, "y": True})]),
        ('{"name": "run", "arguments": {"s": "a, }", "t": [1,],}}', [("run", {"s": "a, }", "t": [1]})]),
        ('{"name": "run", "arguments": {"s": "é\\ud800"}}', [("run", {"s": "é\ud800"})]),
        ('{"name": "run", "arguments": null}', [("run", {})]),
        # a last text with quotes of its own, also before another call
        ('{"name": "run", "arguments": {"code": "print("hi")"}}', [("run", {"code": 'print("hi")'})]),
        (
            f'{{"name": "run", "arguments": {{"a": 1, "code": "def f():\\n  """{{}} \\"a\\"""""}}}}\n{ONE}',
            [("run", {"a": 1, "code": 'def f():\n  """{} "a""""'}), ("search", {"q": "a"})],
        ),
        # what lies in the arguments is data
        (f'{{"name": "run", "arguments": {{"inner": {ONE}}}}}', [("run", {"inner": json.loads(ONE)})]),
        (f'{{"name": "run", "arguments": {{"inner": {json.dumps(ONE)}}}}}', [("run", {"inner": ONE})]),
        # an unknown tool counts when it stands alone
        *[(text, [("fly", {"q": "a"})]) for text in (OTHER, f"Hm.\n{OTHER}\n", f"<tool_call>{OTHER}</tool_call>")],
        (f"{F}json\n{OTHER}\n{F}", [("fly", {"q": "a"})]),
        (f"We could use {OTHER} here.", []),
        *[(f'{{"name": "Ann", {more}}}', []) for more in ('"age": 3', '"input": "x"')],
        # a known tool wins over another key that could be the name
        ('{"tool": "run", "name": "Ann", "args": {"a": 1}}', [("run", {"a": 1})]),
        *[(text, []) for text in ("The answer is {42}.", '{"name": ["search"], "arguments": {}}')],
        *[(f"{F}python\n{code}\n{F}", []) for code in parts("x = search(q='a')|search(q='a')\nprint(1)|fly(q='a')")],
        (f"{F}python\nsearch(q=open('/etc/passwd').read())\n{F}", []),
    ],
)
def test_calls(text: str, expected: list[tuple[str, Any]]) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"name": "search", "arguments": {"q": "a', "unfinished JSON call of search"),
        (f'{F}json\n{{"name": "search", "arguments": {{"q":\n{F}', "unfinished JSON call of search"),
        ('{"name": "run", "arguments": {"a": print("hi")}}', "unreadable JSON call of run"),
        ('{"name": "search", "arguments": ["a"]}', "arguments of search must be a JSON object"),
        ('{"name": "search", "query": "a"}', "arguments of search are missing"),
        ('{"name": "search"}', "arguments of search are missing"),
        ("search('a', q='b')", "arguments of search must be given by name, as JSON values"),
    ],
)
def test_problems_are_told_and_no_calls(text: str, problem: str) -> None:
    assert read_calls(text, TOOLS) == ([], [problem])


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
AROUND = st.sampled_from(["{}", "Let me see.\n{}\nDone.", "```json\n{}\n```", "<tool_call>\n{}\n</tool_call>", "[{}]"])


@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=4), AROUND, st.sampled_from([None, 2]), st.booleans())
def test_any_call_round_trips(arguments: dict[str, Any], frame: str, indent: int | None, literal: bool) -> None:
    call = {"name": "run", "arguments": arguments}
    text = repr(call) if literal else json.dumps(call, indent=indent, ensure_ascii=False)
    assert read(frame.replace("{}", text, 1)) == [("run", arguments)]
