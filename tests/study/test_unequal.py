"""Arms with unequal defaults are not compared without a word, and the word comes before a token is spent."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import Budget, DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.study import Study, StudyWarning
from rlm_loop.tasks import Match, Suite, Task

SUITE = Suite("two", tuple(Task(f"t{n}", "What is 1?", Match(1), 1) for n in range(2)))
ALIKE = {"code": ToolLoopAgent(), "lean": LeanAgent()}
SAME = Budget(steps=20)


def said(arms: dict[str, Any], folder: Path, **more: Any) -> tuple[list[str], ScriptedModel]:
    model = ScriptedModel(["1"] * 99)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Study("s", arms, SUITE, model=model, **more).run(folder, progress=False)
    return [str(w.message) for w in caught if w.category is StudyWarning], model


UNEQUAL: list[tuple[dict[str, Any], str]] = [
    (
        {**ALIKE, "react": ReActAgent(max_steps=50)},
        "arms differ in budget (",
    ),
    (
        {"code": ToolLoopAgent(), "short": ToolLoopAgent(max_steps=5)},
        "arms differ in budget (",
    ),
    (
        {
            "code": ToolLoopAgent(),
            "few": ToolLoopAgent(history=40),
        },
        "arms differ in history (",
    ),
    (
        {"code": ToolLoopAgent(), "slow": ToolLoopAgent(budget=Budget(cell_seconds=5))},
        "arms differ in budget (",
    ),
    (
        {"code": ToolLoopAgent(), "long": ToolLoopAgent(max_tokens=9)},
        "arms differ in sampling (",
    ),
    ({"code": ToolLoopAgent(repl="plain"), "other": ToolLoopAgent()}, "arms differ in repl ("),
]


@pytest.mark.parametrize(("arms", "line"), UNEQUAL, ids=[line for _, line in UNEQUAL])
def test_what_differs_by_default_is_said(arms: dict[str, Any], line: str, tmp_path: Path) -> None:
    lines, _ = said(arms, tmp_path)
    assert any(line in text for text in lines), lines
    assert all("set them alike, or declare differs=(" in text and "\n" not in text for text in lines)


def test_it_is_said_before_a_token_is_spent_and_once(tmp_path: Path) -> None:
    arms = {**ALIKE, "react": ReActAgent(max_steps=50)}
    model = ScriptedModel(["1"] * 99)
    with warnings.catch_warnings():
        warnings.simplefilter("error", StudyWarning)
        with pytest.raises(StudyWarning):
            Study("s", arms, SUITE, model=model).run(tmp_path, progress=False)
    assert model.prompts == []
    assert said(arms, tmp_path)[0]
    assert said(arms, tmp_path)[0] == []  # there is nothing left to run


@pytest.mark.parametrize(
    ("arms", "more"),
    [
        (ALIKE, {}),
        ({**ALIKE, "direct": DirectAgent(max_steps=1)}, {}),
        ({"code": ToolLoopAgent()}, {"factors": {"max_steps": [5, 10]}}),
        ({"code": ToolLoopAgent()}, {"factors": {"history": [None, 40]}}),
        ({"a": ToolLoopAgent(), "b": ToolLoopAgent(max_steps=5)}, {"differs": ("budget",)}),
    ],
)
def test_equal_or_declared_arms_are_not_warned_of(arms: dict[str, Any], more: dict[str, Any], tmp_path: Path) -> None:
    assert said(arms, tmp_path, **more)[0] == []
