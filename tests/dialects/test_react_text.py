from __future__ import annotations

import json
from typing import Any

import pytest
from growth import parts
from hypothesis import given
from hypothesis import strategies as st
from offered import TOOLS, F

from rlm_loop.dialects import ReActText
from rlm_loop.dialects.react import own_words, read_step
from rlm_loop.dialects.reader import code_of, read_arguments
from rlm_loop.messages import Reply

JSON = '{"q": "a"}'
CALL = f"Thought: t\nAction: search\nAction Input: {JSON}"


@pytest.mark.parametrize(
    "text",
    [
        f"THOUGHT: t\nACTION: search\nINPUT: {JSON}",
        CALL.replace("\n", "\r\n"),
        f"Thought 1: t\nAction 1: search\nAction Input 1: {JSON}",
        f"**Thought:** t\n**Action:** search\n**Action Input:** {JSON}",
        f"**Thought**: t\n**Action**: search\n**Action Input**: {JSON}",
        f"### Thought: t\n### Action: search\n### Action Input: {JSON}",
        f"- Thought: t\n- Action: search\n- Action_Input: {JSON}",
        f"Thought: t\nAction:\nsearch\nAction Input:\n{JSON}",
        f'Thought: t\nAction: "search".\nAction Input: {JSON}',
        f"Thought: t\nAction: search\nAction Input:\n{F}json\n{JSON}\n{F}",
        f"Thought: t\nAction: search[{JSON}]",
        f"Thought: t\nAction: search(q: str, n: int = 3)\nAction Input: {JSON}",
        f"Thought: t\nAction: `search(q: str) -> str`\nAction Input: {JSON}",
        'Thought: t\nAction: search({\n  "q": "a"\n})',
        "Thought: t\nAction: search\nAction Input: {'q': 'a'}",
        f"<think>Action: python</think>{CALL}",
        f"{CALL}\nObservation: b\nThought: u\nAction: finish[b]",
        f"{CALL}\nFinal Answer: b",
    ],
)
def test_a_tool_with_arguments(text: str) -> None:
    name, given, _ = read_step(own_words(text))
    assert (name, json.loads(read_arguments(None, given)[0])) == ("search", {"q": "a"})


@pytest.mark.parametrize(
    ("text", "action", "expected"),
    [
        ("Action: search[a[0] b]", "search", "a[0] b"),
        ("Action: search()", "search", ""),
        ("Action: search()\nAction Input: x", "search", "x"),
        ("Action: search\nAction Input:\nThought: u", "search", ""),
        ("Action: fly\nAction Input: x", "fly", "x"),
        ("Action: python\nAction Input:\n  if x:\n      y\n\nThought: u", "python", "if x:\n    y"),
        ("Action: python\nAction Input: x = {\n  'a': 1}\nprint(x)", "python", "x = {\n  'a': 1}\nprint(x)"),
        ("Action: python\nAction Input: {x for x in y}", "python", "{x for x in y}"),
        ('Action: python\nAction Input: {"code": "a\\nAction: b"}', "python", '{"code": "a\\nAction: b"}'),
        ('Action: python\nAction Input: {"a": 1,\nAction: 2', "python", '{"a": 1,'),
    ],
)
def test_inputs(text: str, action: str, expected: str) -> None:
    assert read_step(text)[:2] == (action, expected)


FORTY_TWO = (
    "Action: finish(42)|Action: finish[42|final answer: 42|**Final Answer:** 42|**Final Answer: 42**|"
    "Final Answer: 42\nAction: search|Final Answer: 42\nObservation: good"
)


@pytest.mark.parametrize(
    ("text", "finish"),
    [
        *[(f"Thought: t\n{step}", "42") for step in parts(FORTY_TWO)],
        ("Thought: t\nAction: Finish[a [b] c]", "a [b] c"),
        ("Thought: t\nAction: finish[two\nlines]", "two\nlines"),
        ('Thought: t\nAction: finish\nAction Input: {"answer": 42}', '{"answer": 42}'),
        ("Thought: t\nFinal Answer: **42**", "**42**"),
        ("Thought: t\nFinal Answer:\n42\n43\n", "42\n43"),
    ],
)
def test_finishing(text: str, finish: str) -> None:
    assert read_step(own_words(text))[:2] == ("finish", finish)


NOTHING = """Thought: t|Action: Use the search tool|Action:\nAction Input: x|Action: {"tool": "search", "args": {"q|"""


@pytest.mark.parametrize("text", [*parts(NOTHING), 'Action: {"q": "a"}'])
def test_nothing_to_do(text: str) -> None:
    assert read_step(own_words(text))[:2] == (None, "")


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("Thought: t\nAction: search\nObservation: 3\nThought: u", "Thought: t\nAction: search"),
        ("Thought: t\r\nAction: search\r\nObservation: 3", "Thought: t\r\nAction: search"),
        *[(f"Action: search\n{said} 3", "Action: search") for said in ("**Observation:**", "observation:")],
        ("Action: search\n\nObservation 1: 3", "Action: search\n"),
        ("\n Observation: 3", ""),
        ("Thought: my Observation: is that\nAction: search\n", "Thought: my Observation: is that\nAction: search\n"),
    ],
)
def test_own_words_end_where_a_stop_string_would_have_ended_them(text: str, own: str) -> None:
    assert own_words(text) == own


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (f"\n{F}python\nif x:\n    y\n{F}", "if x:\n    y"),
        (f" {F}py\nx = 1\n{F}\nThought: u", "x = 1"),
        (f"\n{F}python\ns = '''\n{F}\n'''\n{F}", f"s = '''\n{F}\n'''"),
        (f"\n{F}python\nx = 1", "x = 1"),
        (f'\n{F}json\n{{"code": "x = 1"}}\n{F}', "x = 1"),
        (' "print(1)"', "print(1)"),
    ],
)
def test_a_fence_or_quotes_around_the_input_are_removed(given: str, code: str) -> None:
    (call,) = ReActText().parse_reply(Reply(f"Action: python\nAction Input:{given}"), TOOLS)
    assert code_of(call) == code
    assert ("code fence removed" in call.notes) == (F in given)


LINES = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=20)
ARGUMENTS = st.dictionaries(
    st.text(max_size=5), st.none() | st.booleans() | st.integers() | st.text(max_size=9), max_size=4
)


@given(st.sampled_from(["look", "I see: {", "a\nb"]), ARGUMENTS, st.sampled_from([None, 2]), LINES)
def test_the_template_round_trips(thought: str, arguments: dict[str, Any], indent: int | None, observed: str) -> None:
    plain = json.dumps(arguments, indent=indent, ensure_ascii=False)
    text = f"Thought: {thought}\nAction: search\nAction Input: {plain}"
    assert read_step(text) == ("search", plain, ())
    assert own_words(f"{text}\nObservation: {observed}") == text
