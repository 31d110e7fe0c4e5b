"""A study that is killed again and again ends with the rows of one that nobody disturbed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import killed_study
import pytest

from rlm_loop.study import load_study, verify_traces

pytestmark = pytest.mark.slow

TIMES = ("trace_run", "started", "seconds", "working_seconds", "model_seconds", "tool_seconds")


def settled(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in TIMES}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="lives of the study are forks")
def test_killed_thirty_times_nothing_is_lost_and_nothing_is_there_twice(tmp_path: Path) -> None:
    whole = killed_study.study().run(tmp_path / "whole", False)
    assert len(whole) == killed_study.EPISODES
    assert {r["error_class"] for r in whole.rows} == {None, "RuntimeError"}
    words = [sys.executable, killed_study.__file__, str(tmp_path / "killed"), "7", "30"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["30"]), done.stderr
    lines = (tmp_path / "killed" / "results.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["schema"] == 1
    assert len(lines) == 1 + killed_study.EPISODES
    found = load_study(tmp_path / "killed")
    assert len(found) == len(whole)
    assert [settled(r) for r in found.rows] == [settled(r) for r in whole.rows]
    assert verify_traces(tmp_path / "killed") == []
