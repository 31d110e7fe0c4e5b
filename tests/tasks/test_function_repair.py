"""Every function is broken by its change and right without it, and a repair counts wherever it was written."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
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


def session(task: Task, *cells: str) -> dict[str, Any]:
    """The names after the task's setup and some cells."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in (task.setup, *cells):
        exec(cell, names)
    return names


def collected(task: Task, *cells: str) -> Any:
    return eval(task.collect, session(task, *cells))


def check(names: dict[str, Any]) -> tuple[bool, str]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        passed = names["check"]()
    return passed, said.getvalue()


def run_here(source: str, expression: str) -> Any:
    names: dict[str, Any] = {}
    exec(source, names)
    return eval(expression, names)


@pytest.mark.parametrize(("case", "task"), [*zip(CASES, SUITE, strict=True)], ids=[c.name for c in CASES])
def test_the_change_breaks_a_visible_and_a_hidden_case_and_the_right_source_passes_all(case: Case, task: Task) -> None:
    passed, said = check(session(task))
    assert (passed, said.partition("(")[0], said.count("\n")) == (False, case.name, 1)
    score = task.score(Attempt(artifact=collected(task)))
    assert (score.resolved, score.value < 1, score.evidence["where"]) == (False, True, "repl")

    assert check(session(task, case.source)) == (True, f"all {len(case.visible)} cases pass\n")
    artifact = collected(task, case.source)
    for crossed in (artifact, json.loads(json.dumps(artifact)), json.dumps(artifact)):
        assert task.score(Attempt(artifact=crossed)).resolved  # whether or not "done" was said


def test_check_looks_the_function_up_when_it_is_called() -> None:
    names = session(ROMAN_TASK)
    for cell, says in (
        ("def roman(n):\n    return 1 / 0", "roman(3) raised ZeroDivisionError: division by zero, expected 'III'\n"),
        ("del roman", "raised KeyError"),
        (ROMAN.source, "cases pass"),
    ):
        exec(cell, names)
        assert says in check(names)[1]


def test_what_a_model_left_around_is_not_in_the_way() -> None:
    artifact = collected(ROMAN_TASK, ROMAN.source, "plain = outputs = function = repr = list = isinstance = None")
    assert ROMAN_TASK.score(Attempt(artifact=artifact)).resolved
    assert ROMAN_TASK.score(Attempt(answer=ROMAN.buggy, artifact=artifact)).resolved  # nor is a wrong answer beside it


@pytest.mark.parametrize(
    "body", ["raise SystemExit", "return roman(n)", "return object()", "return float('nan')", "yield n", "input()"]
)
def test_failures_of_a_function_are_wrong_outputs(body: str) -> None:
    score = ROMAN_TASK.score(Attempt(artifact=collected(ROMAN_TASK, f"def roman(n):\n    {body}")))
    assert (score.resolved, score.value, len(score.evidence["outputs"])) == (False, 0.0, len(ROMAN.hidden))


@pytest.mark.parametrize("name", ["roman", "lru_gets"])
def test_in_the_real_repl(name: str) -> None:
    (task,) = SUITE.take([f"function-repair-{name}"])
    (case,) = [c for c in CASES if c.name == name]
    with PythonREPL(timeout=20, setup=task.setup) as repl:
        assert repl.run("check()").output.startswith(f"{name}(")
        assert not task.score(Attempt(artifact=repl.get(task.collect))).resolved
        last = repl.run(f"{case.source}\nif check():\n    final_answer = 'done'")
        assert task.score(Attempt(last.answer.value, repl.get(task.collect), True)).resolved
        assert "hidden" not in repl.run("print(sorted(globals()))").output


@pytest.mark.parametrize(
    ("template", "resolved"),
    [
        ("{source}", True),
        ("```python\n{source}```", True),
        ("The test was wrong. Here it is:\n```python\n{source}\nprint(roman(4))\n```\nThat fixes it.", True),
        ("Before:\n```python\n{buggy}```\nAfter:\n```python\n{source}```\n```python\ncheck()\n```", True),
        ("Here is the function.\n{source}", True),
        ("import math\n{source}\nassert check()\nfinal_answer = 'done'", True),
        ("```python\n{source}", True),
        ("{buggy}", False),
        ("done", False),
        ("def roman(n:\n    return 1", False),
        ("class Roman: pass", False),
    ],
)
def test_a_repair_in_the_answer_counts(template: str, resolved: bool) -> None:
    answer = template.format(source=ROMAN.source, buggy=ROMAN.buggy)
    judge = HiddenCases(ROMAN, tuple(ROMAN_TASK.expected), run_here)
    score = judge(Attempt(answer=answer, answered=True))
    assert (score.resolved, bool(score.reason)) == (resolved, True)
    beside = judge(Attempt(answer=answer, artifact=collected(ROMAN_TASK)))  # a REPL with the bug in it
    assert beside.resolved is resolved


@pytest.mark.parametrize(
    "artifact", [None, "", "x", "[]", 7, [], [[]], [["returned"]] * 8, {"a": 1}, [None] * 99, object(), "[" * 99_999]
)
def test_no_artifact_breaks_the_scorer(artifact: Any) -> None:
    assert not ROMAN_TASK.score(Attempt(artifact=artifact)).resolved
    assert not ROMAN_TASK.score(Attempt(answer=artifact)).resolved


def test_an_answer_runs_in_a_process_of_its_own_and_an_endless_one_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    score = ROMAN_TASK.score(Attempt(answer=f"```python\n{ROMAN.source}```", answered=True))
    assert (score.resolved, score.evidence["where"]) == (True, "answer")
    assert not ROMAN_TASK.score(Attempt(answer="def roman(n):\n    import os\n    os._exit(1)")).resolved
    assert not ROMAN_TASK.score(Attempt(answer="import nowhere_at_all\ndef roman(n): return ''")).resolved
    monkeypatch.setattr("rlm_loop.tasks.function_repair.SECONDS", 0.5)
    score = ROMAN_TASK.score(Attempt(answer="def roman(n):\n    while True: pass"))
    assert (score.resolved, "did not run to its end" in score.reason) == (False, True)


def test_a_machine_that_cannot_judge_is_not_held_against_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine has no room, or would run the answer less isolated than its cells were."""
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", "/there/is/no/such/folder")
        with pytest.raises((OSError, ReplError)):
            run_in_fresh_process("x = 1", "x + 1")
    need("hardened")
    monkeypatch.setitem(LAUNCHERS, "auto", Hardened())  # pyright: ignore[reportArgumentType]
    assert run_in_fresh_process("x = 1", "x + 1", cells="hardened") == 2
    with pytest.raises(ReplError, match="its cells were 'sandbox', here it would be 'hardened'"):
        run_in_fresh_process("x = 1", "x + 1", cells="sandbox")
