from __future__ import annotations

import warnings

import pytest
from growth import parts
from hypothesis import given
from hypothesis import strategies as st
from offered import F

from rlm_loop.dialects.fences import read_fences
from rlm_loop.dialects.reader import looks_like_refusal, strip_answer_prefix
from rlm_loop.tools.python_source import looks_like_python, source_state

OPEN_STRING = f"s = '''\n{F}\nx\n{F}\n'''"
PYTHON = parts(
    "py|PYTHON|Python3|REPL|ipython| python|{python}|{.python #a}|python title=x|python:main.py|python {1,2}"
)
OTHERS = parts("replay|pythonic|text|json|bash|cpython")
#: Programs whose strings and comments hold fences.
HOLDING = [
    f'def f():\n    """\n{F}python\n    f()\n{F}\n    """',
    f'def f():\n    """\n    {F}\n    f()\n    {F}\n    """',
    f"s = 'a\\\n{F}\\\nb'",
    f"x = await f('''\n{F}\n''')",
    f"x = 1  # ends in {F}\ny = 2",
]


def codes(text: str) -> list[str]:
    return [block.code for block in read_fences(text).blocks]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # plain forms
        ("~~~python\nx = '```'\n```\n~~~", ["x = '```'\n```"]),
        (f"{F}python   \nx = 1\n`````  \t", ["x = 1"]),
        *[(f"{F}{label}\nx = 1\n{F}", ["x = 1"]) for label in PYTHON],
        *[(f"{F}{label}\nx = 1\n{F}", []) for label in OTHERS],
        *[(f"{F}python\n{code}\n{F}", [code]) for code in HOLDING],
        # indentation and line ends
        (f"   {F}python\nif a:\n  if b:\n    c\n{F}", ["if a:\n  if b:\n    c"]),
        (f"10. First\n\n    {F}python\n    x = 1\n    {F}\n11. Second", ["x = 1"]),
        (f"- a\n  - b\n\n    {F}python\n    if x:\n        y\n    {F}\n", ["if x:\n    y"]),
        (f"-\ta\n\n\t{F}python\n\tx = 1\n\t{F}\n", ["x = 1"]),
        (f"- {F}python\n  x = 1\n  {F}", ["x = 1"]),
        (f"1. First:\n{F}python\nx = 1\n{F}", ["x = 1"]),
        (f"- a\n\nmargin\n\n    {F}python\n    x = 1\n    {F}\n", []),
        # a broken block never reaches over what follows it
        (f"{F}python\nx = (\n{F}\n{F}output\n1\n{F}\nDone\n{F}python\ny = 2\n{F}", ["x = (", "y = 2"]),
        (f"{F}python\ns = '''a\n{F}\n\n{F}output\nb\n{F}\nDone", ["s = '''a"]),
        (f"{F}python\ns = '''a\n{F}\nThen:\n{F}python\ny = 2\n{F}\nDone", ["s = '''a", "y = 2"]),
        (f"{F}python\nx = 1\n{F}output\n1\n{F}\nDone", ["x = 1"]),
        # an empty block does not swallow the next one; beside a labelled block those without a label are prose
        (f"{F}\n{F}\n\n{F}\nx = 1\n{F}", ["", "x = 1"]),
        (f"{F}\n{F}\n\n{F}python\nx = 1\n{F}", ["x = 1"]),
        (f"{F}\nsrc/a.py\n{F}\n{F}python\nx = 1\n{F}\n{F}\nx = 2\n{F}", ["x = 1"]),
        (f"{F}\nx = 1\n{F}\n{F}python\n{F}", ["x = 1", ""]),
        (f"{F}\nx = 1\n{F}\n{F}json\n1\n{F}", ["x = 1"]),
        # no fences at all
        ("```python x = 1```", []),
        ("`` `python\nx\n``", []),
    ],
)
def test_blocks(text: str, expected: list[str]) -> None:
    assert codes(text) == expected


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (f"{F}python\n{OPEN_STRING}\n{F}", "line 1: nested fence"),
        (f"\n{F}python\n{F}", "line 2: empty block"),
        (f"Hi\n{F}python\nx = 1", "line 2: unclosed fence"),
        (f"{F}python\nreturn", "line 1: does not compile"),
        (f"{F}json\n1\n{F}", "line 1: skipped a block of json"),
        (f"{F}text\nx = 1\n{F}", "line 1: looks like python"),
        (f"    {F}python\n    x = 1\n    {F}", "line 1: indented by four or more"),
        (f"{F}python\nx\n{F}output\n{F}", "line 1: closed by the next opening fence"),
        (f"{F}\nx\n{F}\n{F}py\nx\n{F}", "line 1: skipped a block without a label beside labelled ones"),
    ],
)
def test_everything_noticed_is_in_the_notes(text: str, note: str) -> None:
    assert note in read_fences(text).notes


@pytest.mark.parametrize(
    ("label", "code", "expected"),
    [
        *[("text", code, True) for code in parts("x = 1|x: int = 1|import os|print(1)|def f(): pass|await f()")],
        *[("text", code, False) for code in parts("hello|42|Result: 42|not found|The answer is 5.||pass|x =")],
        ("json", "f()", True),
        ("tool_code", "for a in b:\n    a", True),
        *[("json", code, False) for code in ('{"a": 1}', "[1, 2]", "null")],
        *[(label, "a = f(1)", False) for label in parts("output|js|toml|bash")],
    ],
)
def test_python_in_all_but_the_label(label: str, code: str, expected: bool) -> None:
    (block,) = read_fences(f"{F}{label}\n{code}\n{F}").skipped
    assert (block.language, "looks like python" in block.notes) == (label, expected)


def test_the_languages_are_an_argument() -> None:
    reading = read_fences(f"{F}\na\n{F}\n{F}sql\nb\n{F}\n{F}python\nc\n{F}", languages=frozenset({"sql"}))
    assert [b.code for b in reading.blocks] == ["b"]
    assert [b.language for b in reading.skipped] == ["", "python"]


PLAIN = "The answer is `42`.\r\n\n  Indented; ```not a fence``` \n"


@pytest.mark.parametrize(
    ("text", "blocks", "prose"),
    [
        (PLAIN, [], PLAIN),
        (f"a\n{F}python\nx\n{F}\nb\n{F}json\n1\n{F}\nc", ["x"], "a\nb\nc"),
        (f"The answer is 42\n{F}", [], "The answer is 42"),
    ],
)
def test_prose_is_what_stands_outside(text: str, blocks: list[str], prose: str) -> None:
    reading = read_fences(text)
    assert ([block.code for block in reading.blocks], reading.prose) == (blocks, prose)


STATEMENTS = st.sampled_from(
    [
        *parts("x = 1|if x:\n    y = 2|def f(a):\n\treturn a|# note ```||   |class A:\n  b = 1\n\n  c = 2|await g()"),
        "s = '''\n```python\nx\n```\n'''",
        't = """\n```\n"""',
        "print(f'''{x}\n~~~\n''')",
        "z = '`'",
        "u = '\x0c \u2028 \x85'",
        "for i in range(3):\n    for j in 'ab':\n        print(i,\nj)",
    ]
)
PROSE = st.lists(st.sampled_from(["Some words.", "", "- item", "1. step", "x `y` z", "It's so"]), max_size=3)


@given(st.lists(st.tuples(PROSE, st.lists(STATEMENTS, min_size=1, max_size=5)), min_size=1, max_size=3), PROSE)
def test_programs_round_trip_exactly(parts: list[tuple[list[str], list[str]]], end: list[str]) -> None:
    programs = ["\n".join(statements) for _, statements in parts]
    text = "".join("\n".join([*prose, f"{F}python", p, F, ""]) for (prose, _), p in zip(parts, programs, strict=True))
    assert codes(text + "\n".join(end)) == programs


@given(st.lists(STATEMENTS, min_size=1, max_size=5), st.sampled_from(["   ", "  ", " "]))
def test_programs_in_an_indented_fence_round_trip(statements: list[str], indent: str) -> None:
    program = "\n".join(["x = 0", *statements])
    text = "\n".join(indent + line for line in [f"{F}python", *program.split("\n"), F])
    assert codes(text) == [program]


@pytest.mark.parametrize(
    ("code", "state"),
    [
        *[(c, "compiles") for c in parts("x = 1|await f()|x = '\\d'|1 is 1|annotation: unknown")],
        *[(c, "open string") for c in parts("s = '''|s = 'a\\")],
        *[(c, "broken") for c in parts("x = (|%time x|!ls|x?|a\0b|'\ud800'")],
        *[(c, "broken") for c in ("[" * 10_000, "f" + "()" * 50_000, "1" + "+1" * 50_000, "x = " + "9" * 5_000)],
    ],
)
def test_source_state_never_raises_or_warns(code: str, state: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert source_state(code) == state
        looks_like_python(code)


REFUSALS = parts(
    "I'm sorry, I can't help with that.|I\u2019m sorry, but I can\u2019t assist with that request.|Sorry, I cannot "
    "provide this.|I cannot answer this question.|I am unable to access the file.|As an AI language model, I cannot do "
    "that.|I'm sorry, but I am not able to process images."
)
ANSWERS = parts(
    "I cannot answer in one word, but the answer is 42.|I'm sorry for the mistake. It is 42.|I can't find any "
    "duplicates: 0|I cannot be right about more than 3|Nobody said: I cannot help|42|"
)


@pytest.mark.parametrize(("text", "expected"), [*[(t, True) for t in REFUSALS], *[(t, False) for t in ANSWERS]])
def test_refusals(text: str, expected: bool) -> None:
    assert looks_like_refusal(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[(t, "42") for t in parts("Final Answer: 42|final answer:42|FINAL ANSWER : 42|**Final answer:** 42")],
        *[(t, "42") for t in parts("**Final Answer**: 42|**Final Answer: 42**|## Final Answer: 42")],
        *[(t, "42") for t in parts("### Final Answer\n42|**Final Answer**\n\n42|I counted them.\n\nFinal Answer: 42")],
        *[(t, "42") for t in parts("Final Answer:\r\n42\r\n|42\n\nFinal Answer:|__Final Answer:__ 42")],
        ("Final Answer: 1\nWait.\nFinal Answer: 2\nline 2\n", "2\nline 2"),
        ("Final Answer:", ""),
        *[(t, t) for t in parts("  42 |My final answer: 42|final answers: 42|Final answer is 42|Final answer\n42")],
        ("final_answer: 42", "final_answer: 42"),
    ],
)
def test_the_answer_prefix(text: str, expected: str) -> None:
    assert strip_answer_prefix(text) == expected
