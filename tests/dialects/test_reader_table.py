"""The same code comes out of a fence, a call in text, a native call and a ReAct input, for each damage to it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from offered import TOOLS

from rlm_loop.actions import Answer, CallTool, Malformed, Note, Observation, RunCode
from rlm_loop.dialects import CodeBlocks, Dialect, Direct, FunctionCalls, ReActText
from rlm_loop.dialects.reader import code_of, without_reasoning
from rlm_loop.messages import Reply, ToolCall
from rlm_loop.outcome import Turn

SIGNATURE = "python(code: str) -> str"
CODES = [
    "x = 1",
    'print("a")',
    'def f(n):\n    """Return n, "doubled".\n\n    >>> f(1)\n    2\n    """\n    return 2 * n\nprint(f(1))',
    "d = {'a': {'b': 1}}\nprint(d['a'])",
    "import re\nprint(re.sub(r'\\d+\\.', '', 'a1.'))",
    'words = "one, two".split(", ")\nif words:\n    print("\\n".join(words))',
    "print(''.join(c for c in 'äöü'))",
]


def fence(code: str) -> Reply:
    return Reply(f"Let me see.\n```python\n{code}\n```\n")


def in_text(arguments: str) -> Reply:
    return Reply(f'{{"name": "python", "arguments": {arguments}' + "}" * arguments.endswith("}"))


def native(arguments: str) -> Reply:
    return Reply("", (ToolCall("c1", "python", arguments),), "tool_calls")


def react(arguments: str) -> Reply:
    return Reply(f"Thought: I look.\nAction: python\nAction Input: {arguments}")


#: How a dialect carries the arguments object of a call.
CALLS: dict[str, tuple[Dialect, Callable[[str], Reply]]] = {
    "text": (FunctionCalls("text"), in_text),
    "strict text": (FunctionCalls("text", text_answers=False), in_text),
    "native": (FunctionCalls("native"), native),
    "react": (ReActText(), react),
}
in_calls = pytest.mark.parametrize("dialect", [d for d, _ in CALLS.values()], ids=[*CALLS])
in_all = pytest.mark.parametrize("dialect", [CodeBlocks(), *(d for d, _ in CALLS.values())], ids=["code", *CALLS])


def quoted(code: str) -> str:
    return json.dumps({"code": code})


def unescaped(code: str) -> str:
    return f'{{"code": "{code}"}}'


def indented(code: str) -> str:
    return textwrap.indent(code, "    ")


def hanging(code: str) -> str:
    first, _, rest = code.partition("\n")
    return f"{first}\n{indented(rest)}".rstrip("\n")


#: What may be wrong with the arguments of a call.
DAMAGE: dict[str, Callable[[str], str]] = {
    "none": quoted,
    "indented": lambda code: quoted(indented(code)),
    "indented as the JSON around it": lambda code: quoted(hanging(code)),
    "indented as the JSON around it, no closing quote": lambda code: f'{{"code": "{hanging(code)}\n}}',
    "line breaks": lambda code: quoted(code).replace("\\n", "\n"),
    "quotes": lambda code: unescaped(code.replace("\\", "\\\\").replace("\n", "\\n")),
    "quotes and line breaks": unescaped,
    "triple quotes": lambda code: f"{{'code': '''\n{code}\n'''}}",
    "triple quotes, indented": lambda code: f"{{'code': '''\n{indented(code)}\n    '''}}",
    "triple quotes around triple quotes": lambda code: f'{{"code": """\n{code}\n"""}}',
    "brace in the code": lambda code: quoted(code + "}"),
    "brace after the call": lambda code: quoted(code) + "}",
    "signature": lambda code: quoted(f"{SIGNATURE}\n{code}"),
    "fence in the code": lambda code: quoted(f"```python\n{code}\n```"),
    "no closing quote": lambda code: f'{{"code": "{code}}}',
    "not closed": lambda code: f'{{"code": "{code}',
}
#: Damages after which another reading is Python as well: `\\n` in a string is a line break or two characters.
_SLASHES = {"line breaks", "quotes and line breaks", "triple quotes", "triple quotes, indented"}
_SLASHES |= {
    "indented as the JSON around it, no closing quote",
    "no closing quote",
    "not closed",
    "triple quotes around triple quotes",
}


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        pytest.param(damage, code, id=f"{damage}-{number}")
        for damage in DAMAGE
        for number, code in enumerate(CODES)
        if damage not in _SLASHES or "\\" not in code
    ],
)
@pytest.mark.parametrize("carrier", CALLS)
def test_a_call_gives_the_cell_that_a_fence_gives(carrier: str, damage: str, code: str) -> None:
    (dialect, say), arguments = CALLS[carrier], DAMAGE[damage](code)
    (cell,) = CodeBlocks().parse_reply(fence(code), TOOLS)
    (call,) = dialect.parse_reply(say(arguments), TOOLS)
    assert isinstance(cell, RunCode)
    assert isinstance(call, CallTool)
    assert (code_of(call) or "").strip("\n") == cell.code == code  # triple quotes stand on lines of their own
    assert call.notes or damage == "indented" or arguments in (quoted(code), unescaped(code))


#: What may be wrong with code in a fence.
FENCE_DAMAGE: dict[str, Callable[[str], str]] = {
    "none": lambda code: f"Look:\n```python\n{code}\n```",
    "indented": lambda code: f"```python\n{indented(code)}\n```",
    "indented but its first line": lambda code: f"```python\n{hanging(code)}\n```",
    "no label": lambda code: f"```\n{code}\n```",
    "beside one without a label": lambda code: f"```\nsrc/\n  a.py\n```\n```py\n{code}\n```",
    "signature": lambda code: f"```python\n{SIGNATURE}\n{code}\n```",
    "signature before it": lambda code: f"{SIGNATURE}\n```python\n{code}\n```",
    "brace": lambda code: f"```python\n{code}}}\n```",
    "not closed": lambda code: f"```python\n{code}",
    "after reasoning": lambda code: f"<think>\n```python\nx = 'no'\n```\n</think>\n```python\n{code}\n```",
}


@pytest.mark.parametrize("code", CODES, ids=range(len(CODES)))
@pytest.mark.parametrize("damage", FENCE_DAMAGE)
@in_all
def test_a_fence_is_read_alike_in_every_dialect(dialect: Dialect, damage: str, code: str) -> None:
    (action,) = dialect.parse_reply(Reply(FENCE_DAMAGE[damage](code)), TOOLS)
    assert code_of(action) == code
    if damage in ("signature", "brace", "not closed"):
        assert action.notes


@in_calls
def test_code_after_the_signature_is_the_call(dialect: Dialect) -> None:
    (action,) = dialect.parse_reply(Reply(f"{SIGNATURE}\ndf = context.copy()\nprint(df)"), TOOLS)
    assert code_of(action) == "df = context.copy()\nprint(df)"


@in_all
def test_several_fences_are_a_cell_each(dialect: Dialect) -> None:
    text = "```python\nx = 1\n```\nand\n```\nx\n```\n```python\nprint(x)\n```"
    assert [code_of(action) for action in dialect.parse_reply(Reply(text), TOOLS)] == ["x = 1", "print(x)"]


INVENTED = [
    ("```python\nx = 1\n```\nObservation: 1\n```python\nprint(2)\n```", ["x = 1"]),
    ("```python\nx = 1\n\nObservation: 1 is it\n```", ["x = 1"]),
    ("Let me see.\nObservation: 1\n```python\nprint(2)\n```", [None]),
    ("<|im_start|>assistant\n```python\nx = 1\n```", ["x = 1"]),
]


@pytest.mark.parametrize(
    ("text", "codes"), INVENTED, ids=["after code", "in an open fence", "before code", "the template"]
)
@in_all
def test_what_follows_an_invented_result_is_not_read(dialect: Dialect, text: str, codes: list[str | None]) -> None:
    read = [code_of(action) for action in dialect.parse_reply(Reply(text), TOOLS)]
    assert [code and code.strip() for code in read] == codes


@pytest.mark.parametrize(
    "dialect", [CodeBlocks(), FunctionCalls("text"), FunctionCalls()], ids=["code", "text", "native"]
)
def test_a_string_of_code_that_is_like_a_result_is_code(dialect: Dialect) -> None:
    code = "s = '''\nObservation: 1\n'''\nprint(s)"  # ReAct cannot say it: the line is its stop string
    assert [code_of(action) for action in dialect.parse_reply(fence(code), TOOLS)] == [code]


def test_a_reply_that_is_python_and_sets_final_answer_is_run_and_no_other() -> None:
    for text, cell in {
        "final_answer = 15": "final_answer = 15",
        "x = 3\nfinal_answer = x\n": "x = 3\nfinal_answer = x",
        "final_answer = 15\nObservation: 15": "final_answer = 15",
        "final_answer == 15": None,
        "The final_answer = 15": None,
        "x = 3": None,
    }.items():
        (action,) = CodeBlocks().parse_reply(Reply(text), TOOLS)
        assert code_of(action) == cell, text


@in_calls
def test_what_is_no_code_is_not_run(dialect: Dialect) -> None:
    broken = '{"name": "python", "arguments": {"code": "a b "c"}}'
    for text in ("It is 4.", "```json\n[1, 2]\n```", "```\nIt is 4.\n```", broken):
        assert not any(isinstance(action, CallTool) for action in dialect.parse_reply(Reply(text), TOOLS)), text


def test_a_fence_is_prose_where_there_is_no_python() -> None:
    (action,) = FunctionCalls("text").parse_reply(fence("x = 1"), {"final_answer": TOOLS["final_answer"]})
    assert isinstance(action, Answer)


def test_a_repaired_native_call_is_sent_back_as_json() -> None:
    reply = native(unescaped("print('a')") + "}")
    turn = Turn(1, reply, tuple(FunctionCalls().parse_reply(reply, TOOLS)), (Observation("a"),))
    assert json.loads(FunctionCalls().format_turn(turn)[0].tool_calls[0].arguments) == {"code": "print('a')"}


REASONED = [
    "<think>say 41</think>42",
    "<think>\nsay `41`\n```python\nfinal_answer = 41\n```\n</think>\n\n42",
    'I say {"name": "final_answer", "arguments": {"answer": 41}}\n</think>\n42',
    "<thinking>Action: finish[41]</thinking>\n42",
    "hm\nFinal Answer: 41\n</thinking>\n42",
    "<think></think>\n<think>more</think>\n42",
]
EVERY: dict[str, tuple[Dialect, str]] = {
    "code": (CodeBlocks(), "42"),
    "calls": (FunctionCalls("text"), "42"),
    "native": (FunctionCalls("native"), "42"),
    "react": (ReActText(), "Final Answer: 42"),
    "direct": (Direct(), "42"),
}


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("text", REASONED)
def test_reasoning_is_neither_code_nor_answer(name: str, text: str) -> None:
    dialect, answer = EVERY[name]
    (action,) = dialect.parse_reply(Reply(text.removesuffix("42") + answer), TOOLS)
    assert isinstance(action, Answer)
    assert action.value in ("42", 42)


@pytest.mark.parametrize("name", EVERY)
def test_reasoning_alone_is_malformed(name: str) -> None:
    texts = "<think>I should look</think>", "hm\n</think>\n", "<thinking>so", "<THINK>a</THINK> "
    for reply in (*map(Reply, texts), Reply("", extra={"reasoning_content": "It is 42."})):
        (action,) = EVERY[name][0].parse_reply(reply, TOOLS)
        assert isinstance(action, Malformed), reply


@pytest.mark.parametrize("text", ["print('</think>')", 'It is "</think>".', "Use `</think>`.", "no tag", ""])
def test_a_tag_in_quotes_ends_no_reasoning(text: str) -> None:
    assert without_reasoning(text) == text


# -- calls and answers in text by example, and what is sent back

DIALECT = FunctionCalls("text")
#: A dialect, a reply and what is read: a call, a part of what is said to the model, or an answer.
READ: list[tuple[Dialect, str, Any]] = [
    # a bare string is the one string parameter of a tool that has just that, and nothing for any other tool
    (DIALECT, 'an object {"name": "python", "arguments": "print(1)"}', ("python", {"code": "print(1)"})),
    (DIALECT, "python('print(1)')", ("python", {"code": "print(1)"})),
    (DIALECT, "python(1)", "arguments of python must be a JSON object"),
    (DIALECT, '{"name": "add", "arguments": "1, 2"}', "arguments of add must be a JSON object"),
    (DIALECT, "`final_answer(42)`", ("final_answer", {"answer": 42})),
    (DIALECT, "final_answer(true)", ("final_answer", {"answer": True})),
    # what is no call is text
    (DIALECT, "It is final_answer: 42", "It is final_answer: 42"),
    (DIALECT, "Final Answer: 4", "4"),
    # what was meant as a call is not
    (DIALECT, '{"name": "u", "arguments": {"code": """\nf("""Do.""")\n"""}}', "not valid JSON; inside a JSON string"),
    (DIALECT, '{"name": "python", "arguments": {"code": "print("x""}}', "for a quote and"),
    (DIALECT, "I'm sorry, but I can't help with that.", "Please try"),
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
