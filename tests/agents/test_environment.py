"""What happens to actions, as a run shows it."""

from __future__ import annotations

import json
import math
import re
import threading
from functools import partial
from typing import Any

import numpy
import pytest

from rlm_loop import LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.actions import Observation
from rlm_loop.agents import Rules
from rlm_loop.models import Reply, ScriptedModel, ToolCall
from rlm_loop.repl import PythonREPL

Lean = partial(LeanAgent, presentation="native")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def fails() -> str:
    """Always fail."""
    raise KeyError("k")


def cells(*codes: str) -> str:
    return "\n".join(f"```python\n{code}\n```" for code in codes)


def calls(*named: tuple[str, str]) -> Reply:
    return Reply(tool_calls=tuple(ToolCall(f"c{n}", name, given) for n, (name, given) in enumerate(named)))


def seen(*replies: Any, agent: Any = ToolLoopAgent, context: Any = None, **settings: Any) -> list[Observation]:
    """What the actions of each turn led to."""
    settings = {"repl": "plain", "tools": (add, fails), "max_steps": len(replies), **settings}
    outcome = agent(model=ScriptedModel(replies), **settings).run("?", context=context)
    return [one for turn in outcome.turns for one in turn.observations]


def kinds(observations: list[Observation]) -> list[str | None]:
    return [one.failure and one.failure.kind for one in observations]


@pytest.mark.parametrize("answer", ["None", "0", "''", "False", "[]", "float('nan')", "{1: (2, 3)}", "10**40"])
def test_any_value_is_a_legal_answer(answer: str) -> None:
    (one,) = seen(cells(f"final_answer = {answer}"))
    assert one.answer is not None
    expected = eval(answer)
    assert one.answer.value == expected or math.isnan(expected)


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("    x = 3\n    print(x)", "3"),
        ("\n\tfor i in range(2):\n\t\tprint(i)", "0\n1"),
        ("# look\n  x = 4\n  print(x)", "IndentationError: unexpected indent"),  # not all of it is indented
        ("  print(1)\nprint(2)", "IndentationError: unexpected indent"),
    ],
)
def test_the_code_of_a_call_that_is_indented_as_a_whole_runs(code: str, shown: str) -> None:
    (one,) = seen(calls(("python", json.dumps({"code": code}))), agent=Lean)
    assert shown in one.text
    assert one.ok == ("Error" not in shown)


def test_blocks_after_an_error_or_an_answer_are_skipped() -> None:
    found = seen(cells("x = 1", "1/0", "x = 2"), cells("print(x)", "final_answer = x", "x = 3"))
    assert kinds(found) == [None, "runtime", "skipped", None, None, "skipped"]
    assert found[3].text.strip() == "1"


def test_an_answer_of_a_failing_cell_is_pending_until_confirmed() -> None:
    first, second = seen(cells("final_answer = 5\n1/0"), cells("final_answer = 5"))
    assert first.answer is None
    assert first.pending is not None
    assert first.pending.value == 5
    assert "ZeroDivisionError" in first.text
    assert "confirm" in first.text
    assert second.answer is not None


def test_tools_are_functions_in_cells_and_their_errors_are_named() -> None:
    first, *failed = seen(cells("print(add(1, b=2))"), cells("fails()"), cells("add(1)"), cells("add(1, 'x')"))
    assert first.text.strip() == "3"
    for one, words in zip(failed, ["KeyError", "missing", "'b'"], strict=True):
        assert one.failure is not None
        assert words in one.text


def test_calls_run_in_order_the_final_one_last_and_each_has_a_result() -> None:
    named = [
        ("final_answer", '{"answer": 1}'),
        ("add", '{"a": 1, "b": 2}'),
        ("fails", ""),
        ("python", '{"code": "print(6 * 7)"}'),
        ("final_answer", '{"answer": 2}'),
    ]
    found = seen(calls(*named), agent=Lean)
    assert kinds(found) == [None, None, "runtime", None, "skipped"]
    assert found[0].answer is not None
    assert found[0].answer.value == 1  # the first of two finals counts
    assert [found[1].text, found[3].text.strip()] == ["3", "42"]
    assert "KeyError" in found[2].text


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
def test_a_bad_call_is_told_in_one_line_and_is_no_answer(name: str, arguments: str, kind: str) -> None:
    (one,) = seen(calls((name, arguments)), agent=Lean)
    assert kinds([one]) == [kind]
    assert one.answer is None
    assert one.text
    assert "\n" not in one.text


def test_text_answers_and_require_code() -> None:
    assert seen("4")[0].answer is not None
    first, second = seen("4", "4", rules=Rules(require_code=True))  # it asks once, and never again
    assert kinds([first]) == ["rejected"]
    assert second.answer is not None
    assert seen(cells("1"), "4", rules=Rules(require_code=True))[1].answer is not None


@pytest.mark.parametrize(
    ("check", "value", "accepted", "words"),
    [
        ({"answer_type": int}, "'12'", 12, ""),
        ({"answer_type": int}, "'twelve'", None, "integer"),
        ({"answer_type": list[int]}, "(1, 2)", [1, 2], ""),
        ({"verify": lambda v: v > 3}, "4", 4, ""),
        ({"verify": lambda v: v > 3}, "2", None, "did not pass"),
        ({"verify": lambda v: "too small" if v < 3 else None}, "2", None, "too small"),
        ({"verify": lambda v: v["x"]}, "2", None, "TypeError"),
        ({"verify": lambda v: 1}, "4", 4, ""),
        ({"verify": lambda v: re.match("4", str(v))}, "4", 4, ""),
        ({"verify": lambda v: numpy.int64(v) > 3}, "4", 4, ""),
        ({"verify": lambda v: numpy.int64(v) > 3}, "2", None, "did not pass"),
    ],
)
def test_typed_and_verified_answers(check: dict[str, Any], value: str, accepted: Any, words: str) -> None:
    (one,) = seen(cells(f"final_answer = {value}"), **check)
    assert kinds([one]) == [None if accepted else "rejected"]
    assert (one.answer and one.answer.value) == accepted
    assert words in one.text


def test_clashing_tool_names_are_refused_all_of_them() -> None:
    def context() -> str:
        """Take a reserved name."""
        return ""

    with pytest.raises(ValueError, match="add, context"):
        seen("4", tools=(add, add, context))


def test_nothing_is_started_before_it_is_needed() -> None:
    def explode() -> PythonREPL:
        raise AssertionError("a REPL was opened")

    assert seen(calls(("add", '{"a": 1, "b": 1}')), agent=Lean, repl=explode)[0].text == "2"


def test_the_context_and_tools_are_restored_after_a_cell_overwrote_them() -> None:
    """Small models rewrite `context` from its preview, with invented rows."""
    overwrite = cells("context = 'invented'\nadd = None\nprint(context)")
    found = seen(overwrite, cells("print(context, add(1, 2))"), context="the real one")
    assert [one.text.splitlines()[0] for one in found] == ["invented", "the real one 3"]
    told = found[0].text.splitlines()[1:]
    assert (len(told), "context" in told[0], "add" in told[0]) == (1, True, True)


def test_the_model_is_never_told_of_unlisted_tools() -> None:
    asked = calls(("python", json.dumps({"code": "print(llm_query('x'))"})))
    nothing, heard = seen(calls(("nothing", "{}")), asked, "heard", agent=Lean, max_steps=2, max_depth=1)
    assert "llm_query" not in nothing.text
    assert heard.text.strip() == "heard"


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
