"""Each row says what its cells were kept apart by."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from study_arms import task

from rlm_loop import ScriptedModel, ToolLoopAgent
from rlm_loop.repl import Hardened
from rlm_loop.study import Study
from rlm_loop.tasks import Suite


def test_a_study_goes_on_elsewhere(tmp_path: Path) -> None:
    """Which launcher cells ran in is no part of a study, and each row records its own."""
    if problem := Hardened().problem(sys.executable):
        pytest.skip(problem)
    tasks = Suite("s", (task("one", "1"), task("two", "1")))
    agent = ToolLoopAgent(ScriptedModel(["```python\nfinal_answer = '1'\n```"] * 2), repl="plain")
    Study("mine", {"code": agent}, tasks).run(tmp_path, False, limit=1)
    rows = Study("mine", {"code": replace(agent, repl="hardened")}, tasks).run(tmp_path, False).rows
    assert [(row["isolation"], row["resolved"]) for row in rows] == [("plain", True), ("hardened", True)]
