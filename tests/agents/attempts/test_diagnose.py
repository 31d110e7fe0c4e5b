"""Failure classes: one rule after the other, on runs of scripted models and on outcomes told line by line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from repair_tasks import FILE, bug_line, call, done, edit, fix, task, wrong

from rlm_loop import Budget, LeanAgent, ToolLoopAgent
from rlm_loop.accounting.ledger import Ledger
from rlm_loop.actions import CallTool, Failure, Observation, RunCode
from rlm_loop.agents.attempts import diagnose, generate_patch
from rlm_loop.agents.attempts.diagnose import patched_files, true_files
from rlm_loop.messages import Reply, Usage
from rlm_loop.models import ScriptedModel
from rlm_loop.models.base import ModelError
from rlm_loop.models.scripted import Scripted
from rlm_loop.outcome import Outcome, Stop, Turn
from rlm_loop.study.store.rows import score_fields
from rlm_loop.tasks.base import Attempt, Score, Task
from rlm_loop.tasks.humaneval_repair import FILE as TRUE
from rlm_loop.traces.reader import RunRecord
from rlm_loop.traces.trace import Trace
from rlm_loop.workspace import Workspace

BROKEN = edit("    return (")  # would not compile


def unrelated() -> Reply:
    return call("apply_edit", path="notes.txt", start_line=1, end_line=0, replacement="found it")


def look(path: str = FILE) -> Reply:
    return call("read_file", path=path)


def search(text: str) -> Reply:
    return call("search_code", query=text)


@pytest.mark.parametrize(
    ("replies", "budget", "label", "progress", "limit"),
    [
        ([fix(), done()], Budget(), "resolved", "resolved", ""),
        ([wrong(), done()], Budget(), "wrong_fix", "wrong_fix", ""),
        ([wrong(), done()], Budget(steps=1), "wrong_fix", "wrong_fix", "steps"),
        ([unrelated(), done()], Budget(), "other_files", "other_files", ""),
        ([unrelated(), wrong(), done()], Budget(), "wrong_fix", "wrong_fix", ""),
        ([look(), BROKEN, done()], Budget(), "edit_rejected", "edit_rejected", ""),
        ([look(), BROKEN, look()], Budget(steps=3), "edit_rejected", "edit_rejected", "steps"),
        ([done()], Budget(), "never_found", "never_found", ""),
        ([search("zzz"), search("zzzz")], Budget(steps=2), "never_found", "never_found", "steps"),
        ([look("nowhere.py"), done()], Budget(), "never_found", "never_found", ""),
        ([look(), done()], Budget(), "not_edited", "not_edited", ""),
        ([search("def has"), done()], Budget(), "not_edited", "not_edited", ""),
        ([look(), search("zzz")], Budget(steps=2), "ran_out", "not_edited", "steps"),
        ([look(), search("zzz")], Budget(calls=2), "ran_out", "not_edited", "calls"),
        ([look(), search("z"), search("z")], Budget(), "repeated", "not_edited", ""),
        ([search("zz"), search("zz")], Budget(), "repeated", "never_found", ""),
        ([Reply(""), Reply("")], Budget(malformed=2), "malformed", "never_found", ""),
        ([look("a"), look("b")], Budget(tool_failures=2), "tool_failures", "never_found", ""),
        ([look(), ModelError("gone")], Budget(), "crashed", "not_edited", ""),
        ([fix(), ModelError("gone")], Budget(), "crashed", "resolved", ""),
    ],
)  # fmt: skip
def test_each_class(replies: list[Scripted], budget: Budget, label: str, progress: str, limit: str) -> None:
    trace = Trace()
    agent = LeanAgent(model=ScriptedModel(replies), presentation="native", budget=budget)
    try:
        outcome = generate_patch(task(), agent, trace=trace).outcome
    except ModelError as error:
        outcome: Outcome = error.outcome  # pyright: ignore[reportAttributeAccessIssue]
    score = task().score(Attempt(outcome.answer, outcome.artifact, outcome.answered))
    found = diagnose(task(), outcome, score)
    assert (found.label, found.progress, found.limit) == (label, progress, limit)
    assert found.true_files == (TRUE,)
    assert diagnose(task(), RunRecord(tuple(trace.events)), score) == found  # the same from the trace


def test_declining_is_giving_up() -> None:
    agent = LeanAgent(model=ScriptedModel(["I'm sorry, but I can't help with that."] * 3), presentation="native")
    outcome = generate_patch(task(), agent).outcome
    assert (outcome.stop, diagnose(task(), outcome, Score(False)).label) == ("blocked", "gave_up")


def test_an_edit_that_was_taken_back() -> None:
    buggy = task().inline.split("\n")[bug_line()]  # which has one line before the file
    agent = LeanAgent(model=ScriptedModel([wrong(), edit(buggy), done()]), presentation="native")
    result = generate_patch(task(), agent)
    assert result.empty
    found = diagnose(task(), result.outcome, Score(False))
    assert (found.label, found.tried, found.rejected) == ("undone", 2, 0)


@pytest.mark.parametrize(
    ("cell", "label"),
    [
        ("print(read_file('solution.py'))", "not_edited"),
        ("print(open('other.py'))", "never_found"),
        ("print(apply_edit('solution.py', 99, 99, 'x'))", "edit_rejected"),
        ("print(apply_edit('solution.py', 1, 1, '# a note'))", "wrong_fix"),
        ("print(search_code('def has'))", "not_edited"),
        ("print(read_file('my_solution.pyx'))", "never_found"),
    ],
)
def test_cells_are_classed_as_calls_are(cell: str, label: str) -> None:
    agent = ToolLoopAgent(model=ScriptedModel([f"```python\n{cell}\n```", "done"]))
    outcome = generate_patch(task(), agent).outcome
    score = task().score(Attempt(outcome.answer, outcome.artifact, outcome.answered))
    assert diagnose(task(), outcome, score).label == label


PATCH = "diff --git a/pkg/m.py b/pkg/m.py\nindex 1..2 100644\n--- a/pkg/m.py\n+++ b/pkg/m.py\n@@ -1 +1 @@\n-a\n+b\n"


def an_outcome(*pairs: tuple[Any, Observation], patch: str = "", stop: Stop = Stop.ANSWERED) -> Outcome:
    turns = [Turn(n, Reply(), (a,), (o,)) for n, (a, o) in enumerate(pairs, 1)]
    return Outcome(None, stop, turns, Usage.nothing(), Ledger(), artifact=patch)


def a_task(**facts: Any) -> Task:
    return Task("t", "?", lambda attempt: Score(False), facts=facts, workspace=lambda: Workspace({}))


@pytest.mark.parametrize(
    ("evidence", "facts", "label"),
    [
        ({"tests": {"a": "passed", "b": "failed"}}, {"fail_to_pass": ["a"]}, "broke_others"),
        ({"tests": {"a": "failed", "b": "failed"}}, {"fail_to_pass": ["a"]}, "wrong_fix"),
        ({"tests": {"a": "missing", "b": "passed"}}, {"fail_to_pass": ["a"]}, "wrong_fix"),
        ({"tests": {"b": "failed"}, "broke_others": True}, {}, "broke_others"),
        ({"tests": {"b": "failed"}, "broke_others": False}, {}, "wrong_fix"),
        ({}, {}, "wrong_fix"),
    ],
)
def test_breaking_other_tests(evidence: Any, facts: dict[str, Any], label: str) -> None:
    found = diagnose(a_task(file="pkg/m.py", **facts), an_outcome(patch=PATCH), Score(False, evidence=evidence))
    assert found.label == label


def test_an_evaluation_says_that_others_were_broken() -> None:
    from rlm_loop.workspace.evaluation import evaluate

    files = {"m.py": "def f(): return 1\ndef g(): return 1\n", "test_m.py": TESTS}
    with Workspace(files) as space:
        space.apply_edit("m.py", 1, 2, "def f(): return 2\ndef g(): return 2\n")
        patch = space.diff()
    judged = evaluate(
        lambda: Workspace(files), patch, fail_to_pass=["test_m.py::test_f"], pass_to_pass=["test_m.py::test_g"]
    )
    assert diagnose(a_task(file="m.py"), an_outcome(patch=patch), judged.score()).label == "broke_others"
    assert score_fields(judged.score())["broke_others"] is True


TESTS = "import m\ndef test_f(): assert m.f() == 2\ndef test_g(): assert m.g() == 1\n"


@pytest.mark.parametrize(
    ("action", "text", "failed", "found"),
    [
        (CallTool("read_file", json.dumps({"path": "./pkg/m.py"})), "1: a", False, True),
        (CallTool("read_file", json.dumps({"path": "m.py"})), "1: a", False, False),
        (CallTool("read_file", json.dumps({"path": "pkg/m.py"})), "no such lines", True, False),
        (CallTool("search_code", "{}"), "pkg/m.py:3: x = 1", False, True),
        (CallTool("search_code", "{}"), "lib/pkg/m.py:3: x = 1", False, False),
        (CallTool("list_files", "{}"), "pkg/m.py\npkg/n.py", False, False),  # a name is no content
        (CallTool("run_tests", "{}"), 'File "/tmp/x/pkg/m.py", line 3, in f', False, False),
        (RunCode("read_file('pkg/m.py')"), "", False, True),
        (RunCode("read_file('a_pkg/m.py')"), "", False, False),
        (CallTool("read_file", "not json"), "", False, False),
    ],
)
def test_what_counts_as_having_found_a_file(action: Any, text: str, failed: bool, found: bool) -> None:
    seen = Observation(text, Failure("runtime", text) if failed else None)
    result = diagnose(a_task(file="pkg/m.py"), an_outcome((action, seen)), Score(False))
    assert result.found is found


@pytest.mark.parametrize(
    ("facts", "expected", "files"),
    [
        ({"file": "a.py"}, None, ("a.py",)),
        ({"files": ["a.py", "b.py"]}, None, ("a.py", "b.py")),
        ({"patch": PATCH}, None, ("pkg/m.py",)),
        ({}, PATCH, ("pkg/m.py",)),
        ({}, "def f(): ...", ()),
        ({}, 3, ()),
    ],
)
def test_where_the_true_files_come_from(facts: dict[str, Any], expected: Any, files: tuple[str, ...]) -> None:
    known = Task("t", "?", lambda attempt: Score(False), expected, facts=facts)
    assert true_files(known) == files


def test_files_of_a_patch_as_git_writes_them() -> None:
    with Workspace({"a b.py": "x\n", "old.py": "y\n", "gone.py": "z\n"}) as space:
        (space.root / "a b.py").write_text("x2\n")
        (space.root / "gone.py").unlink()
        (space.root / "new b" / "c.py").parent.mkdir()
        (space.root / "new b" / "c.py").write_text("n\n")
        (space.root / 'größe "x".py').write_text("n\n")
        assert set(patched_files(space.diff())) == {"a b.py", "gone.py", "new b/c.py", 'größe "x".py'}
    renamed = "diff --git a/old name.py b/b/new.py\nrename from old name.py\nrename to b/new.py\n"
    assert patched_files(renamed) == ("old name.py", "b/new.py")
    assert patched_files("") == ()


def test_where_the_true_file_is_not_known_any_look_is_a_find_and_any_patch_may_be_right() -> None:
    seen = (CallTool("read_file", "{}"), Observation("1: x"))
    assert diagnose(a_task(), an_outcome(seen), Score(False)).label == "not_edited"
    assert diagnose(a_task(), an_outcome(), Score(False)).label == "never_found"
    assert diagnose(a_task(), an_outcome(patch=PATCH), Score(False)).label == "wrong_fix"
