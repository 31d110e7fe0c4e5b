"""`final_answer`: any value counts, only when set by this cell, and it says how it crossed."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pytest

from rlm_loop.actions import FinalAnswer
from rlm_loop.repl import PythonREPL

OBJECTS: list[tuple[str, Any]] = [
    ("None", None),
    ("0", 0),
    ("''", ""),
    ("False", False),
    ("[]", []),
    ("{}", {}),
    ("(1, (2,))", (1, (2,))),
    ("{1: 'a', (1, 2): 'b'}", {1: "a", (1, 2): "b"}),
    ("{'~': 1}", {"~": 1}),
    ("{1, 2}", {1, 2}),
    ("frozenset({3})", frozenset({3})),
    ("10 ** 5000", 10**5000),
    ("-(2 ** 200)", -(2**200)),
    ("b'\\x00\\xff'", b"\x00\xff"),
    ("float('inf')", math.inf),
    ("0.1 + 0.2", 0.1 + 0.2),
    ("'\\ud83d lone'", "\ud83d lone"),
    ("'a\\r\\nb\\x00'", "a\r\nb\x00"),
    ("__import__('datetime').date(2024, 2, 29)", dt.date(2024, 2, 29)),
    ("__import__('datetime').datetime(2024, 1, 2, 3, 4, 5, 6)", dt.datetime(2024, 1, 2, 3, 4, 5, 6)),
    ("__import__('collections').Counter('aab')", {"a": 2, "b": 1}),
    ("__import__('collections').namedtuple('P', 'x y')(1, 2)", (1, 2)),
]


@pytest.mark.parametrize(("code", "value"), OBJECTS, ids=[c for c, _ in OBJECTS])
@pytest.mark.parametrize("form", ["final_answer = {}", "final_answer({})"])
def test_values_cross_as_objects(shared: PythonREPL, form: str, code: str, value: Any) -> None:
    answer = shared.run(form.format(code)).answer
    assert answer == FinalAnswer(value, "object")
    assert answer is not None
    assert type(answer.value) is type(value)


REPRS = {
    "object()": "<object object",
    "lambda: 1": "<function",
    "[object()]": "[<object object",
    "type('R', (), {'__repr__': lambda s: 'R!'})()": "R!",
    "type('Bad', (), {'__repr__': lambda s: 1/0})()": "repr raised ZeroDivisionError",
}


@pytest.mark.parametrize("code", REPRS)
def test_what_cannot_cross_is_a_repr(shared: PythonREPL, code: str) -> None:
    answer = shared.run(f"final_answer = {code}").answer
    assert answer is not None
    assert answer.form == "repr"
    assert REPRS[code] in answer.value


def test_a_list_inside_itself_is_a_repr(shared: PythonREPL) -> None:
    assert shared.run("loop = []; loop.append(loop); final_answer = loop").answer == FinalAnswer("[[...]]", "repr")


def test_pandas_and_numpy_values(repl: PythonREPL) -> None:
    pytest.importorskip("pandas")
    repl.run("import numpy as np, pandas as pd")
    for code, value in {
        "np.float64(1.5)": 1.5,
        "np.int64(3)": 3,
        "np.bool_(True)": True,
        "np.str_('s')": "s",
        "pd.Series([1, 2]).sum()": 3,
        "{'a': np.int32(1)}": {"a": 1},
        "pd.Timestamp('2024-01-02')": dt.datetime(2024, 1, 2),
    }.items():
        assert repl.run(f"final_answer = {code}").answer == FinalAnswer(value, "object"), code
    frame = repl.run("final_answer = pd.DataFrame({'a': [1]})").answer
    assert frame is not None
    assert (frame.form, "a" in frame.value) == ("repr", True)
    assert repl.run("final_answer = pd.NaT").answer == FinalAnswer("NaT", "repr")
    assert repl.run("final_answer = np.array([1])").answer == FinalAnswer("array([1])", "repr")


def test_an_earlier_answer_does_not_count_again(repl: PythonREPL) -> None:
    assert repl.run("final_answer = 1").answer == FinalAnswer(1, "object")
    assert repl.run("2").answer is None
    assert repl.run("print(final_answer)").output == "1\n"
    assert repl.run("final_answer = 1").answer == FinalAnswer(1, "object")
    repl.new_run()
    assert repl.run("'not set' in repr(final_answer)").output == "True"
    assert repl.get("'final_answer' in globals()") is False


def test_del_unsets(repl: PythonREPL) -> None:
    assert repl.run("final_answer = 1\ndel final_answer").answer is None
    repl.run("final_answer = 2\n1/0")
    result = repl.run("del final_answer")
    assert (result.error, result.answer) == (None, None)
    assert "not set" in repl.run("final_answer").output
    assert repl.run("del final_answer\nfinal_answer = 5").answer == FinalAnswer(5, "object")


def test_a_call_ends_the_cell(repl: PythonREPL) -> None:
    result = repl.run("print('a')\ntry:\n    final_answer(7)\nexcept Exception:\n    pass\nprint('b')")
    assert (result.output, result.answer, result.error) == ("a\n", FinalAnswer(7, "object"), None)
    swallowed = repl.run("try:\n    final_answer(8)\nexcept BaseException:\n    pass")
    assert swallowed.answer == FinalAnswer(8, "object")
    assert repl.run("final_answer(final_answer)").answer == FinalAnswer(8, "object")


def test_an_answer_from_a_thread(repl: PythonREPL) -> None:
    code = "import threading\nt = threading.Thread(target=lambda: final_answer(9))\nt.start(); t.join()"
    result = repl.run(code)
    assert (result.answer, result.output) == (FinalAnswer(9, "object"), "")
