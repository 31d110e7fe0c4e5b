"""A machine that cannot judge raises: nothing that it does may be held against an answer."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from lazy import BARE

from rlm_loop.repl import ReplError
from rlm_loop.tasks import Attempt, Suite
from rlm_loop.tasks.function_repair import run_in_fresh_process
from rlm_loop.tasks.humaneval import humaneval
from rlm_loop.tasks.humaneval_repair import humaneval_repair
from rlm_loop.tasks.judge import JudgeFailed, judge
from rlm_loop.tasks.mutation import Mutation
from rlm_loop.workspace import Workspace
from rlm_loop.workspace.evaluation import TestsCannotRun, evaluate

ROW = {
    "task_id": "HumanEval/0",
    "prompt": 'def more(xs, n):\n    """ The numbers above n. """\n',
    "entry_point": "more",
    "canonical_solution": "    return [x for x in xs if x > n]\n",
    "test": "def check(candidate):\n    assert candidate([1, 5], 2) == [5]\n    assert candidate([2], 2) == []\n",
}
BUG = Mutation(3, 29, "x > n", "x >= n", "compare")
WRONG = "def more(xs, n):\n    return []\n"
PATCH = """--- a/solution.py
+++ b/solution.py
@@ -1,2 +1,2 @@
-def more(xs, n):
+def more(xs, n=0):
     \"\"\" The numbers above n. \"\"\"
"""


NO_TEMPORARY_FOLDER = (tempfile, "tempdir", "/there/is/no/such/folder")
NO_INTERPRETER = (sys, "executable", "/there/is/no/python")


@pytest.fixture
def suites(tmp_path: Path) -> dict[str, Suite]:
    file = tmp_path / "problems.jsonl"
    file.write_text(json.dumps(ROW) + "\n")
    return {"write": humaneval(file), "repair": humaneval_repair(path=file, bugs={"HumanEval/0": BUG})}


@pytest.mark.parametrize("fault", [NO_TEMPORARY_FOLDER, NO_INTERPRETER])
@pytest.mark.parametrize(
    ("suite", "attempt"),
    [("write", Attempt(WRONG)), ("repair", Attempt(WRONG)), ("repair", Attempt(artifact=PATCH))],
)
def test_humaneval_and_its_repair(
    suites: dict[str, Suite], suite: str, attempt: Attempt, fault: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (task,) = suites[suite].tasks
    assert task.score(attempt).resolved is False
    monkeypatch.setattr(*fault)
    with pytest.raises(OSError):
        task.score(attempt)


def test_a_judge_that_did_not_begin_says_nothing_of_the_solution() -> None:
    with pytest.raises(JudgeFailed, match="did not begin"):
        judge([("", WRONG)], ROW["test"], "more", timeout=1e-6)


def test_a_function_repair_needs_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_in_fresh_process("x = 1", "x + 1") == 2
    assert run_in_fresh_process("raise SystemExit", "x") is None
    monkeypatch.setattr(*NO_TEMPORARY_FOLDER)
    with pytest.raises((OSError, ReplError)):
        run_in_fresh_process("x = 1", "x + 1")


FILES = {"a.py": "def f():\n    return 1\n", "test_a.py": "from a import f\ndef test_f():\n    assert f() == 2\n"}
MENDED = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n def f():\n-    return 1\n+    return 2\n"
MARRED = MENDED.replace("return 2", "return 3")


def judged(patch: str, **options: Any) -> bool:
    listed: dict[str, Any] = {"fail_to_pass": ["test_a.py::test_f"], "pass_to_pass": [], "env": BARE}
    return evaluate(lambda: Workspace(FILES), patch, **listed, **options).resolved


@pytest.mark.slow
def test_a_patch_where_no_test_can_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `package_bugs` and SWE-bench's instances judge: no interpreter, none with pytest, no room."""
    assert (judged(MENDED), judged(MARRED)) == (True, False)
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    for python, said in (("/there/is/no/python", "no interpreter"), (str(bare), "pytest does not start")):
        with pytest.raises(TestsCannotRun, match=said):
            judged(MENDED, python=python)
    monkeypatch.setattr("rlm_loop.tools.processes._ROOM", 1 << 62)  # no room on the disk
    assert judged(MENDED)  # what passed has passed
    with pytest.raises(OSError, match="the disk is full"):
        judged(MARRED)
