from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
from growth import grows_in_proportion, parts
from hypothesis import example, given
from hypothesis import strategies as st

from rlm_loop.dialects.tool_text import BARE_VALUE, read_calls

F = "```"
NAMES = ("search", "run", "final_answer")
ONE = '{"name": "search", "arguments": {"q": "a"}}'
OTHER = '{"name": "fly", "arguments": {"q": "a"}}'


def read(text: str) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in read_calls(text, NAMES)[0]]


@pytest.mark.parametrize(
    "text",
    [
        ONE,
        f"\n  {ONE}\n",
        f"I will search.\n{ONE}",
        f"I will search: {ONE} and then answer.",
        f"{F}json\n{ONE}\n{F}",
        f"{F}\n{ONE}\n{F}",
        f"{F}python\n{ONE}\n{F}",
        f"{F}tool_call\r\n{ONE}\r\n{F}",
        f"{F}json {ONE}{F}",
        f"<tool_call>\n{ONE}\n</tool_call>",
        f"<tool_call>{ONE}</tool_call>",
        f"<tools>{ONE}</tools>",
        f"[TOOL_CALLS] [{ONE}]",
        f"[{ONE}]",
        f"[\n  {ONE}\n]",
        "{'name': 'search', 'arguments': {'q': 'a'}}",
        '{"name": "search", "arguments": {"q": "a",},}',
        '{"name": "search", "arguments": {"q": """a"""}}',
        '{"name": "search", "arguments": {"q": "a"}',
        '{"arguments": {"q": "a"}, "name": "search", "id": "x"}',
        '{"name": "search", "arguments": "{\\"q\\": \\"a\\"}"}',
        *[f'{{"{key}": "search", "arguments": {{"q": "a"}}}}' for key in ("tool", "function", "action", "toolName")],
        *[f'{{"name": "search", "{key}": {{"q": "a"}}}}' for key in ("args", "parameters", "input", "action_input")],
        '{"type": "function", "function": {"name": "search", "arguments": {"q": "a"}}}',
        '{"type": "function", "function": {"name": "search", "arguments": "{\\"q\\": \\"a\\"}"}}',
        '{"tool_calls": [{"function": {"name": "search", "arguments": {"q": "a"}}}]}',
        '{"thought": "hm", "action": {"name": "search", "args": {"q": "a"}}}',
        f"{ONE}}}\n",
        f'Braces {{like}} {{"this"}} are no calls.\n{ONE}',
        f"{F}python\nsearch(q='a')\n{F}",
        "search(q='a')",
        f"{ONE}\n<tool_response>\n3\n</tool_response>\n{ONE}",
        f"{ONE}\nObservation: 3\n{ONE}",
    ],
)
def test_one_call(text: str) -> None:
    assert read(text) == [("search", {"q": "a"})]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{ONE}\n{ONE.replace('search', 'run')}", [("search", {"q": "a"}), ("run", {"q": "a"})]),
        (f"[{ONE}, {OTHER}]", [("search", {"q": "a"}), ("fly", {"q": "a"})]),
        (f"{F}python\nrun(a=1)\n{F}\n{F}python\nrun(b=[2])\n{F}", [("run", {"a": 1}), ("run", {"b": [2]})]),
        ('{"name": "run", "arguments": {"code": "a\n\tb"}}', [("run", {"code": "a\n\tb"})]),
        ('{"name": "run", "arguments": {"code": "x = {}\\n```\\n"}}', [("run", {"code": "x = {}\n```\n"})]),
        ('{"name": "run", "arguments": {"p": "\\d+"}}', [("run", {"p": "\\d+"})]),
        ("{'name': 'run', 'arguments': {'x': None, 'y': true}}", [("run", {"x": None, "y": True})]),
        ('{"name": "run", "arguments": {"s": "a, }", "t": [1,],}}', [("run", {"s": "a, }", "t": [1]})]),
        ('{"name": "run", "arguments": {"s": "é\\ud800"}}', [("run", {"s": "é\ud800"})]),
        ('{"name": "run", "arguments": ""}', [("run", {})]),
        ('{"name": "run", "arguments": null}', [("run", {})]),
        # what lies in the arguments is data
        (f'{{"name": "run", "arguments": {{"inner": {ONE}}}}}', [("run", {"inner": json.loads(ONE)})]),
        (f'{{"name": "run", "arguments": {{"inner": {json.dumps(ONE)}}}}}', [("run", {"inner": ONE})]),
        # an unknown tool counts when it stands alone
        *[(text, [("fly", {"q": "a"})]) for text in (OTHER, f"Hm.\n{OTHER}\n", f"{F}json\n{OTHER}\n{F}")],
        (f"<tool_call>{OTHER}</tool_call>", [("fly", {"q": "a"})]),
        (f"We could use {OTHER} here.", []),
        ('{"name": "Ann", "age": 3}', []),
        ('{"name": "Ann", "input": "x"}', []),
        # a known tool wins over another key that could be the name
        ('{"tool": "run", "name": "Ann", "args": {"a": 1}}', [("run", {"a": 1})]),
        # not calls
        ("", []),
        ("The answer is {42}.", []),
        ('{"answer": 42}', []),
        ("[1, 2]", []),
        ('{"name": ["search"], "arguments": {}}', []),
        ('{"name": "search", "parameters": {"type": "object", "properties": {"q": {}}}}', []),
        (f"{F}python\ncall = {ONE}\n{F}", []),
        (f"{F}python\nx = search(q='a')\n{F}", []),
        (f"{F}python\nsearch(q='a')\nprint(1)\n{F}", []),
        (f"{F}python\nsearch(q=open('/etc/passwd').read())\n{F}", []),
        (f"{F}python\nfly(q='a')\n{F}", []),
    ],
)
def test_calls(text: str, expected: list[tuple[str, Any]]) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ('{"name": "search", "arguments": {"q": "a', "unfinished JSON call of search"),
        ('{"name": "search", "arg', "unfinished JSON call of search"),
        (f'{F}json\n{{"name": "search", "arguments": {{"q":\n{F}', "unfinished JSON call of search"),
        ('{"name": "run", "arguments": {"code": "print("hi")"}}', "unreadable JSON call of run"),
        ('{"name": "search", "arguments": ["a"]}', "arguments of search must be a JSON object"),
        ('{"name": "search"}', "arguments of search are missing"),
        ('{"name": "search", "q": "a"}', "arguments of search are missing"),
        ('{"name": "search", "args": {}, "input": {}}', "arguments of search are given more than once"),
        ("{'name': 'run', 'args': {'a': {1, 2}}}", "arguments of run cannot be written as JSON"),
        ("{'name': 'run', 'args': {1: 2}}", "arguments of run cannot be written as JSON"),
        ("search('a', 'b')", "arguments of search must be given by name, as JSON values"),
        ("search('a', q='b')", "arguments of search must be given by name, as JSON values"),
        (f"{F}python\nsearch(**{{'q': 1}})\n{F}", "arguments of search must be given by name, as JSON values"),
        (
            '{"name": "search", "parameters": {"type": "object", "properties": {}}}',
            "the schema of search is not a call",
        ),
    ],
)
def test_problems_are_notes_and_no_calls(text: str, note: str) -> None:
    assert read_calls(text, NAMES) == ([], (note,))


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("{'name': 'run', 'args': {}}", "Python literal"),
        ('{"name": "run", "args": {"a": "\n"}}', "line breaks inside a string"),
        ('{"name": "run", "args": {"a": 1,}}', "Python literal"),
        ('{"name": "run", "args": {"a": 1}', "missing closing brace"),
        ('{"name": "run", "args": "{}"}', "arguments in a string"),
        ('{"name": "run", "args": ""}', "empty arguments"),
        (OTHER, "unknown tool"),
        ('{"name": "run", "args": {}}}', "stray closing brace"),
        ("run(a=1)", "python call"),
    ],
)
def test_every_leniency_is_noted(text: str, note: str) -> None:
    (call,), notes = read_calls(text, NAMES)
    assert call.notes == notes == (note,)


def test_a_plain_call_has_no_notes_and_says_where_it_stands() -> None:
    (call,), notes = read_calls(f"Hi\n{ONE} ", NAMES)
    assert (call.notes, notes) == ((), ())


def test_what_follows_an_invented_result_is_noted() -> None:
    assert "text after an invented result is not read" in read_calls(f"{ONE}\nObservation: 3\n{ONE}", NAMES)[1]


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FRAMES = st.sampled_from(["{}", "Let me see.\n{}\nDone.", "```json\n{}\n```", "<tool_call>\n{}\n</tool_call>", "[{}]"])


@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=4), FRAMES, st.sampled_from([None, 2]), st.booleans())
def test_any_call_round_trips(arguments: dict[str, Any], frame: str, indent: int | None, literal: bool) -> None:
    call = {"name": "run", "arguments": arguments}
    text = repr(call) if literal else json.dumps(call, indent=indent, ensure_ascii=False)
    assert read(frame.replace("{}", text, 1)) == [("run", arguments)]


PIECES = st.sampled_from(
    [
        ONE,
        OTHER,
        *parts(
            '{|}|[|]|"|\'|"name"|:|"search"|,|{{|}}|"""|\'\'\'|\\|\n|```| |```python\n|run(|a=1|)|<tool_call>|</t'
            'ool_call>|<think>|\x00|�|Observation:|"arguments"'
        ),
    ]
)


@given(st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join)))
@example('{"name": "search", "arguments": {"a": ' + "9" * 5000 + "}}")
@example("{'name': 'search', 'arguments': {[]: 1}}")
@example('{"name": "search", "arguments": ' + '{"a":' * 5000)
def test_reading_is_total(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calls, notes = read_calls(text, NAMES)
    assert all(isinstance(json.loads(call.arguments), dict) for call in calls)
    assert len(set(notes)) == len(notes)
    assert (calls, notes) == read_calls(text, NAMES)


@pytest.mark.parametrize(
    "unit",
    [
        ONE,
        "{\n" + " " * 500,
        *parts(
            '{|{"|{"a":|[{|{"name":"run",|{"name":"run" x}|{"name":"run" "}|{"name":"run" """|'
            "{'name':'run' '''|"
            '{"name":"fly", "|{"name":"run",,}|{ |"|<tool_call>|run('
        ),
    ],
)
def test_no_text_takes_time_that_grows_with_its_square(unit: str) -> None:
    grows_in_proportion(lambda text: read_calls(text, NAMES), unit)


@pytest.mark.parametrize(
    ("text", "value", "notes"),
    [
        ('{"name": "search", "arguments": "a\\nb"}', "a\nb", (BARE_VALUE,)),
        ('{"name": "search", "arguments": 3}', 3, (BARE_VALUE,)),
        ("search('a')", "a", ("python call", BARE_VALUE)),
        ("search([1, 2])", [1, 2], ("python call", BARE_VALUE)),
    ],
)
def test_a_bare_value_is_handed_on_for_the_tool_to_decide(text: str, value: object, notes: tuple[str, ...]) -> None:
    (call,), _ = read_calls(text, NAMES)
    assert (call.name, json.loads(call.arguments), call.notes) == ("search", value, notes)
