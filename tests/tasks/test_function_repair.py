"""Every function is broken by its change and right without it, and a repair counts wherever it was written."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import pytest

from rlm_loop.repl import Hardened, PythonREPL, ReplError
from rlm_loop.repl.isolation.launchers import LAUNCHERS
from rlm_loop.tasks import Attempt, Task
from rlm_loop.tasks.function_repair import CASES, Case, HiddenCases, function_repair, run_in_fresh_process
from tests.repl.session_kinds import need

SUITE = function_repair()
ROMAN = next(c for c in CASES if c.name == "roman")
(ROMAN_TASK,) = SUITE.take(["function-repair-roman"])
EACH = pytest.mark.parametrize(("case", "task"), [*zip(CASES, SUITE, strict=True)], ids=[c.name for c in CASES])


def session(task: Task, *cells: str) -> dict[str, Any]:
    """The names after the task's setup and some cells."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in (task.setup, *cells):
        exec(cell, names)
    return names


def check(names: dict[str, Any]) -> tuple[bool, str]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        passed = names["check"]()
    return passed, said.getvalue()


def run_here(source: str, expression: str) -> Any:
    names: dict[str, Any] = {}
    exec(source, names)
    return eval(expression, names)


@EACH
def test_the_change_breaks_a_visible_and_a_hidden_case(case: Case, task: Task) -> None:
    names = session(task)
    passed, said = check(names)
    assert (passed, said.partition("(")[0], said.count("\n")) == (False, case.name, 1)
    score = task.score(Attempt(artifact=eval(task.collect, names)))
    assert (score.resolved, score.value < 1, score.evidence["where"]) == (False, True, "repl")


@EACH
def test_the_right_source_passes_all(case: Case, task: Task) -> None:
    names = session(task, case.source)
    assert check(names) == (True, f"all {len(case.visible)} cases pass\n")
    artifact = eval(task.collect, names)
    for crossed in (artifact, json.loads(json.dumps(artifact)), json.dumps(artifact)):
        assert task.score(Attempt(answer="done", artifact=crossed)).resolved
    assert task.score(Attempt(artifact=artifact)).resolved  # the artifact counts, whether or not "done" was said


def test_check_looks_the_function_up_when_it_is_called() -> None:
    names = session(ROMAN_TASK)
    assert not check(names)[0]
    exec("def roman(n):\n    return 1 / 0", names)
    assert check(names) == (False, "roman(3) raised ZeroDivisionError: division by zero, expected 'III'\n")
    exec("del roman", names)
    assert "raised KeyError" in check(names)[1]
    exec(ROMAN.source, names)
    assert check(names)[0]


def test_what_a_model_left_around_is_not_in_the_way() -> None:
    names = session(ROMAN_TASK, ROMAN.source, "plain = outputs = function = repr = list = isinstance = None")
    assert ROMAN_TASK.score(Attempt(artifact=eval(ROMAN_TASK.collect, names))).resolved


def test_failures_of_a_function_are_wrong_outputs() -> None:
    for body in ("raise SystemExit", "return roman(n)", "return object()", "return float('nan')", "yield n", "input()"):
        names = session(ROMAN_TASK, f"def roman(n):\n    {body}")
        score = ROMAN_TASK.score(Attempt(artifact=eval(ROMAN_TASK.collect, names)))
        assert (score.resolved, score.value) == (False, 0.0)
        assert len(score.evidence["outputs"]) == len(ROMAN.hidden)


@pytest.mark.parametrize("name", ["roman", "unique", "lru_gets"])
def test_in_the_real_repl(name: str) -> None:
    (task,) = SUITE.take([f"function-repair-{name}"])
    (case,) = [c for c in CASES if c.name == name]
    with PythonREPL(timeout=20, setup=task.setup) as repl:
        assert repl.run("check()").output.startswith(f"{name}(")
        assert not task.score(Attempt(artifact=repl.get(task.collect))).resolved
        last = repl.run(f"{case.source}\nif check():\n    final_answer = 'done'")
        assert last.answer is not None
        assert last.output == f"all {len(case.visible)} cases pass\n"
        assert task.score(Attempt(last.answer.value, repl.get(task.collect), True)).resolved
        assert "hidden" not in repl.run("print(sorted(globals()))").output


ANSWERS = [
    ("{source}", True),
    ("```python\n{source}```", True),
    ("The test was wrong. Here it is:\n```python\n{source}\nprint(roman(4))\n```\nThat fixes it.", True),
    ("Before:\n```python\n{buggy}```\nAfter:\n```python\n{source}```\n```python\ncheck()\n```", True),
    ("Here is the function.\n{source}", True),
    ("import math\n{source}\nassert check()\nfinal_answer = 'done'", True),
    ("{buggy}", False),
    ("done", False),
    ("", False),
    ("def roman(n):\n    return", False),
    ("def roman(n:\n    return 1", False),
    ("class Roman: pass", False),
    ("```python\n{source}", True),
    (None, False),
    (42, False),
    ("<function roman at 0x7f>", False),
]


@pytest.mark.parametrize(("template", "resolved"), ANSWERS)
def test_a_repair_in_the_answer_counts(template: Any, resolved: bool) -> None:
    answer = template.format(source=ROMAN.source, buggy=ROMAN.buggy) if isinstance(template, str) else template
    judge = HiddenCases(ROMAN, tuple(ROMAN_TASK.expected), run_here)
    score = judge(Attempt(answer=answer, answered=True))
    assert (score.resolved, bool(score.reason)) == (resolved, True)
    broken = eval(ROMAN_TASK.collect, session(ROMAN_TASK))
    assert judge(Attempt(answer=answer, artifact=broken)).resolved is resolved  # also beside an unrepaired REPL


def test_a_wrong_answer_beside_a_repaired_repl_does_not_matter() -> None:
    right = eval(ROMAN_TASK.collect, session(ROMAN_TASK, ROMAN.source))
    assert ROMAN_TASK.score(Attempt(answer=ROMAN.buggy, artifact=right)).resolved


def test_an_answer_runs_in_a_process_of_its_own() -> None:
    score = ROMAN_TASK.score(Attempt(answer=f"```python\n{ROMAN.source}```", answered=True))
    assert (score.resolved, score.evidence["where"]) == (True, "answer")
    assert not ROMAN_TASK.score(Attempt(answer="def roman(n):\n    import os\n    os._exit(1)")).resolved
    assert not ROMAN_TASK.score(Attempt(answer="import nowhere_at_all\ndef roman(n): return ''")).resolved


def test_an_endless_answer_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_loop.tasks.function_repair.SECONDS", 0.5)
    score = ROMAN_TASK.score(Attempt(answer="def roman(n):\n    while True: pass"))
    assert not score.resolved
    assert "did not run to its end" in score.reason


@pytest.mark.parametrize(
    "artifact", ["", "x", "[]", 7, [], [[]], [["returned"]] * 8, {"a": 1}, [None] * 99, object(), "[" * 99_999]
)
def test_no_artifact_breaks_the_scorer(artifact: Any) -> None:
    assert not ROMAN_TASK.score(Attempt(artifact=artifact)).resolved
    assert not ROMAN_TASK.score(Attempt(answer=artifact)).resolved


def test_an_answer_is_not_run_where_it_would_be_less_isolated_than_its_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    need("hardened")
    monkeypatch.setitem(LAUNCHERS, "auto", Hardened())  # pyright: ignore[reportArgumentType]
    assert run_in_fresh_process("x = 1", "x + 1", cells="hardened") == 2
    with pytest.raises(ReplError, match="its cells were 'sandbox', here it would be 'hardened'"):
        run_in_fresh_process("x = 1", "x + 1", cells="sandbox")
