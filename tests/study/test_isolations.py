"""Each row says what its cells were kept apart by, and a study that goes on elsewhere says so, once for each arm."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from study_arms import task

from rlm_loop import ScriptedModel, ToolLoopAgent
from rlm_loop.repl import Hardened
from rlm_loop.study import Study, StudyWarning
from rlm_loop.study.run.isolations import Isolations
from rlm_loop.tasks.base import Suite


def ran(arm: str, *kinds: str) -> list[dict[str, Any]]:
    return [{"arm": arm, "isolation": kind} for kind in kinds]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (ran("code", "sandbox"), ran("code", "hardened", "hardened"), ["code"]),
        (ran("code", "sandbox"), ran("code", "", "sandbox"), []),
        (ran("code", "sandbox", "hardened"), ran("code", "hardened"), []),  # a mixture already
        (ran("code", ""), ran("code", "hardened"), []),  # no cell of it ran yet
        ([], ran("code", "hardened"), []),
        (ran("code", "sandbox"), ran("other", "hardened"), []),
        (ran("a", "sandbox") + ran("b", "sandbox"), ran("a", "plain") + ran("b", "plain"), ["a", "b"]),
        ([{"arm": "code"}], ran("code", "plain"), []),  # a row of before it was recorded
    ],
)
def test_the_first_row_that_differs_is_told(before: Any, after: Any, told: list[str]) -> None:
    known = Isolations(before)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for row in after:
            known.learn(row)
    assert [str(w.message).split(":")[0] for w in said] == told


def test_a_study_goes_on_elsewhere_and_says_so(tmp_path: Path) -> None:
    """Which launcher cells ran in is no part of a study, and each row records its own."""
    if problem := Hardened().problem(sys.executable):
        pytest.skip(problem)
    tasks = Suite("s", (task("one", "1"), task("two", "1")))
    agent = ToolLoopAgent(ScriptedModel(["```python\nfinal_answer = '1'\n```"] * 2), repl="plain")
    Study("mine", {"code": agent}, tasks).run(tmp_path, False, limit=1)
    with pytest.warns(StudyWarning, match="cells run as 'hardened' here, in earlier rows of this folder as 'plain'"):
        rows = Study("mine", {"code": replace(agent, repl="hardened")}, tasks).run(tmp_path, False).rows
    assert [(row["isolation"], row["resolved"]) for row in rows] == [("plain", True), ("hardened", True)]
