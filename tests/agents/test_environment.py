"""What happens to actions, whatever dialect they came from."""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

from rlm_loop import LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.actions import Answer, CallTool, Malformed, RunCode
from rlm_loop.agents.answers import AnswerCheck
from rlm_loop.agents.environment import Environment
from rlm_loop.agents.observations import PENDING
from rlm_loop.models import ScriptedModel
from rlm_loop.repl import PythonREPL


@pytest.fixture
def repl() -> Iterator[PythonREPL]:
    with PythonREPL(timeout=20) as session:
        yield session


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def fails() -> str:
    """Always fail."""
    raise KeyError("k")


def place(repl: PythonREPL, action_mode: str = "code", **more: Any) -> Environment:
    return Environment([add, fails], action_mode=action_mode, repl=lambda: repl, **more)


@pytest.mark.parametrize("answer", ["None", "0", "''", "False", "[]", "float('nan')", "{1: (2, 3)}", "10**40"])
def test_any_value_is_a_legal_answer(repl: PythonREPL, answer: str) -> None:
    (seen,) = place(repl).perform([RunCode(f"final_answer = {answer}")])
    assert seen.answer is not None
    expected = eval(answer)
    assert seen.answer.value == expected or math.isnan(expected)


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("    x = 3\n    print(x)", "3"),
        ("\n\tfor i in range(2):\n\t\tprint(i)", "0\n1"),
        ("# look\n  x = 4\n  print(x)", "IndentationError: unexpected indent"),  # not all of it is indented
        ("  print(1)\nprint(2)", "IndentationError: unexpected indent"),
    ],
)
def test_the_code_of_a_call_that_is_indented_as_a_whole_runs(repl: PythonREPL, code: str, shown: str) -> None:
    (seen,) = place(repl, "calls").perform([CallTool("python", json.dumps({"code": code}))])
    assert shown in seen.text
    assert seen.ok == ("Error" not in shown)


def test_blocks_after_an_error_or_an_answer_are_skipped(repl: PythonREPL) -> None:
    seen = place(repl).perform([RunCode("x = 1"), RunCode("1/0"), RunCode("x = 2")])
    assert [o.failure.kind if o.failure else None for o in seen] == [None, "runtime", "skipped"]
    seen = place(repl).perform([RunCode("print(x)"), RunCode("final_answer = x"), RunCode("x = 3")])
    assert [o.failure.kind if o.failure else None for o in seen] == [None, None, "skipped"]
    assert seen[0].text.strip() == "1"
    assert repl.get("x") == 1


def test_an_answer_of_a_failing_cell_is_pending_until_confirmed(repl: PythonREPL) -> None:
    env = place(repl)
    (seen,) = env.perform([RunCode("final_answer = 5\n1/0")])
    assert seen.answer is None
    assert seen.pending is not None
    assert seen.pending.value == 5
    assert "ZeroDivisionError" in seen.text
    assert PENDING in seen.text
    (seen,) = env.perform([RunCode("final_answer = 5")])
    assert seen.answer is not None


def test_tools_are_functions_in_cells_and_their_errors_are_named(repl: PythonREPL) -> None:
    env = place(repl)
    (seen,) = env.perform([RunCode("print(add(1, b=2))")])
    assert seen.text.strip() == "3"
    for code, words in [("fails()", "KeyError"), ("add(1)", "missing"), ("add(1, 'x')", "'b'")]:
        (seen,) = env.perform([RunCode(code)])
        assert seen.failure is not None, code
        assert words in seen.text, code


def test_calls_run_in_order_the_final_one_last_and_each_has_a_result(repl: PythonREPL) -> None:
    env = place(repl, "calls")
    calls = [
        CallTool("final_answer", '{"answer": 1}'),
        CallTool("add", '{"a": 1, "b": 2}'),
        CallTool("fails", ""),
        CallTool("python", '{"code": "print(6 * 7)"}'),
        CallTool("final_answer", '{"answer": 2}'),
    ]
    seen = env.perform(calls)
    assert seen[0].answer is not None
    assert seen[0].answer.value == 1  # the first of two finals counts
    assert seen[1].text == "3"
    assert seen[2].failure is not None
    assert "KeyError" in seen[2].failure.message
    assert seen[3].text.strip() == "42"
    assert seen[4].failure is not None
    assert seen[4].failure.kind == "skipped"


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("ad", '{"a": 1, "b": 2}', "unknown_tool"),
        ("add", '{"a": 1', "invalid_arguments"),
        ("add", "[1, 2]", "invalid_arguments"),
        ("add", '{"a": 1}', "invalid_arguments"),
        ("add", '{"a": 1, "b": 2, "c": 3}', "invalid_arguments"),
        ("add", '{"a": "1", "b": 2}', "invalid_arguments"),
        ("final_answer", "{}", "invalid_arguments"),
        ("final_answer", '{"result": 1}', "invalid_arguments"),
        ("fails", "", "runtime"),
    ],
)
def test_a_bad_call_is_told_in_one_line_and_is_no_answer(
    repl: PythonREPL, name: str, arguments: str, kind: str
) -> None:
    (seen,) = place(repl, "calls").perform([CallTool(name, arguments)])
    assert seen.failure is not None
    assert seen.failure.kind == kind
    assert seen.answer is None
    assert seen.text
    assert "\n" not in seen.text


def test_text_answers_and_require_code(repl: PythonREPL) -> None:
    (seen,) = place(repl).perform([Answer("4")])
    assert seen.answer is not None
    env = place(repl, require_code=True)
    (first,) = env.perform([Answer("4")])
    assert first.failure is not None
    assert first.failure.kind == "rejected"
    (second,) = env.perform([Answer("4")])  # it asks once, and never again
    assert second.answer is not None
    env = place(repl, require_code=True)
    env.perform([RunCode("1")])
    assert env.perform([Answer("4")])[0].answer is not None


@pytest.mark.parametrize(
    ("check", "value", "accepted", "words"),
    [
        (AnswerCheck(int), "'12'", 12, ""),
        (AnswerCheck(int), "'twelve'", None, "integer"),
        (AnswerCheck(list[int]), "(1, 2)", [1, 2], ""),
        (AnswerCheck(None, lambda v: v > 3), "4", 4, ""),
        (AnswerCheck(None, lambda v: v > 3), "2", None, "did not pass"),
        (AnswerCheck(None, lambda v: "too small" if v < 3 else None), "2", None, "too small"),
        (AnswerCheck(None, lambda v: v["x"]), "2", None, "TypeError"),
        (AnswerCheck(None, lambda v: 1), "4", 4, ""),
        (AnswerCheck(None, lambda v: re.match("4", str(v))), "4", 4, ""),
        (AnswerCheck(None, lambda v: numpy.int64(v) > 3), "4", 4, ""),
        (AnswerCheck(None, lambda v: numpy.int64(v) > 3), "2", None, "did not pass"),
    ],
)
def test_typed_and_verified_answers(
    repl: PythonREPL, check: AnswerCheck, value: str, accepted: Any, words: str
) -> None:
    (seen,) = place(repl, check=check).perform([RunCode(f"final_answer = {value}")])
    if accepted is None:
        assert seen.answer is None
        assert seen.failure is not None
        assert seen.failure.kind == "rejected"
        assert words in seen.text
    else:
        assert seen.answer is not None
        assert seen.answer.value == accepted


def test_malformed_is_told_as_it_is(repl: PythonREPL) -> None:
    (seen,) = place(repl).perform([Malformed("why", "cut_off")])
    assert (seen.text, seen.failure.kind if seen.failure else "") == ("why", "cut_off")


def test_clashing_tool_names_are_refused_all_of_them() -> None:
    def context() -> str:
        """Take a reserved name."""
        return ""

    with pytest.raises(ValueError, match="add, context"):
        Environment([add, add, context])


def test_the_context_is_a_variable(repl: PythonREPL) -> None:
    env = place(repl, context="abc\r\n\x00")
    (seen,) = env.perform([RunCode("print(len(context), ascii(context))")])
    assert seen.text.strip() == r"6 'abc\r\n\x00'"  # fmt: skip


def test_nothing_is_started_before_it_is_needed() -> None:
    def explode() -> PythonREPL:
        raise AssertionError("a REPL was opened")

    env = Environment([add], action_mode="calls", repl=explode)
    assert env.perform([CallTool("add", '{"a": 1, "b": 1}')])[0].text == "2"
    env.close()
    env.close()


def test_the_context_and_tools_are_restored_after_a_cell_overwrote_them(repl: PythonREPL) -> None:
    """Small models rewrite `context` from its preview, with invented rows."""
    env = place(repl, context="the real one")
    (seen,) = env.perform([RunCode("context = 'invented'\nadd = None\nprint(context)")])
    assert seen.text.strip() == "invented"
    (seen,) = env.perform([RunCode("print(context, add(1, 2))")])
    assert seen.text.strip() == "the real one 3"


def test_the_model_is_never_told_of_unlisted_tools(repl: PythonREPL) -> None:
    env = place(repl, "calls", unlisted=[quiet])
    assert "quiet" not in env.tools
    (seen,) = env.perform([CallTool("nothing", "{}")])
    assert "quiet" not in seen.text
    (seen,) = env.perform([CallTool("python", '{"code": "print(quiet())"}')])
    assert seen.text.strip() == "heard"


def quiet() -> str:
    """Be there without being told of."""
    return "heard"


@pytest.mark.parametrize("kind", [ToolLoopAgent, LeanAgent, ReActAgent])
def test_a_context_that_cannot_be_sent_ends_the_run_of_every_loop(kind: Any) -> None:
    """Told to the model as a failed tool, it would count against the loops that call, and not the one of code."""
    cell = "```python\nprint(len(context))\n```"
    if kind is not ToolLoopAgent:
        cell = '{"tool": "python", "arguments": {"code": "print(len(context))"}}'
    if kind is ReActAgent:
        cell = 'Thought: I look.\nAction: python\nAction Input: {"code": "print(len(context))"}'
    with pytest.raises(TypeError, match="cannot send 'context'") as ended:
        kind(model=ScriptedModel([cell] * 3), max_steps=3).run("?", context=[threading.Lock()])
    assert ended.value.outcome.usage.calls == 1  # type: ignore[attr-defined]
