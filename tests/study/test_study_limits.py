"""What a study may cost, how fast it may call, and what happens when a provider or a disk has enough."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import killed_study
import pytest
from study_arms import Arm, suite

from rlm_loop import Budget, DirectAgent, LeanAgent, Task
from rlm_loop.models import ModelError, ModelUnreachable, RateLimited, ScriptedModel
from rlm_loop.study import Study, StudyError, StudyWarning, load_study
from rlm_loop.study.store.rows import to_run

# -- cost: an `Arm` costs 0.001 a call


@pytest.mark.parametrize(("limit", "episodes"), [(0.0, 0), (0.0035, 1), (0.004, 2), (0.0099, 4)])
def test_no_episode_is_started_that_could_cost_too_much(tmp_path: Path, limit: float, episodes: int) -> None:
    study = Study("mine", {"a": Arm("a", 2), "b": Arm("b", 2)}, suite("s", 5))
    with pytest.warns(StudyWarning, match=rf"ended with {10 - episodes} episodes to go.*give more \(max_cost\)"):
        found = study.run(tmp_path, False, max_cost=limit)
    assert sum(r["cost"] for r in found.rows) <= limit + 1e-9
    assert len(study.run(tmp_path, False, max_cost=0.02)) == 10


def test_a_crash_keeps_what_was_used_until_then_and_each_attempt_is_counted(tmp_path: Path) -> None:
    failing = {"a": Arm("a", 3, after_one_call=ModelError("gone"))}
    for _ in range(3):
        Study("mine", failing, suite("s", 1)).run(tmp_path, False, retry_failed=True)
    (row,) = load_study(tmp_path).rows
    assert (row["cost"], row["broken_off"]) == (pytest.approx(0.003), 2)
    assert (row["input_tokens"], row["steps"], row["resolved"], row["stop"]) == (30, 1, False, "failed")
    with pytest.warns(StudyWarning, match=r"\$0\.003 of at most \$0\.003 are spent"):
        Study("mine", failing, suite("s", 2)).run(tmp_path, False, max_cost=0.003)


def test_an_episode_is_held_to_cost_what_its_budget_allows(tmp_path: Path) -> None:
    model = ScriptedModel(["answer-s-1"] * 9, price=(1e-9, 1e-9))
    study = Study("mine", {"a": DirectAgent(model=model, budget=Budget(cost=0.4))}, suite("s", 3))
    with pytest.raises(StudyError, match="max_cost must be 0 or more"):
        study.run(tmp_path, False, max_cost=-1)
    with pytest.warns(StudyWarning, match="ended with 3 episodes to go"):
        study.run(tmp_path, False, max_cost=0.3)
    assert len(study.run(tmp_path, False, max_cost=0.5)) == 3
    unpriced = {"a": DirectAgent(model=ScriptedModel([], price=None))}
    with pytest.raises(StudyError, match=r"the price of scripted \(a\) is not known, so max_cost=1 cannot be kept"):
        Study("mine", unpriced, suite("s", 1)).run(tmp_path / "unpriced", False, max_cost=1)


# -- rate limits, keys and servers


def test_an_episode_that_met_a_providers_limit_is_run_again_by_the_next_run(tmp_path: Path) -> None:
    limits = [RateLimited("slow down")]

    def limited(task: Task) -> None:
        if task.id == "s-2" and limits:
            raise limits.pop()

    study = Study("mine", {"a": Arm(before=limited)}, suite("s", 3))
    assert [r["error_class"] for r in study.run(tmp_path, False).rows] == [None, "RateLimited", None]
    assert [r["error"] for r in study.run(tmp_path, False).rows] == [None] * 3


def test_a_server_that_is_not_there_ends_the_study_after_its_first_task(tmp_path: Path) -> None:
    gone = ScriptedModel([ModelUnreachable("is the server running?", "gone")] * 2)
    with pytest.raises(ModelUnreachable, match="is the server running"):
        Study("mine", {"direct": DirectAgent(), "lean": LeanAgent()}, suite("s", 3), model=gone).run(tmp_path, False)
    assert [(r["error_class"], to_run(r)) for r in load_study(tmp_path).rows] == [("ModelUnreachable", True)] * 2


# -- a full disk


@pytest.fixture
def small_files() -> Any:
    """No file may grow beyond a limit: what a full disk is for one file."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(most: int | None) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, before if most is None else (most, before[1]))

    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_full_disk_in_mid_run_loses_nothing(tmp_path: Path, small_files: Any, jobs: int) -> None:
    study = killed_study.study()
    study.run(tmp_path, False, limit=2)
    small_files(4_000 + max(f.stat().st_size for f in tmp_path.iterdir() if f.is_file()))
    with pytest.raises(StudyError, match=r"File too large; .*make room and run the same command again") as full:
        study.run(tmp_path, False, limit=10, jobs=jobs)
    small_files(None)
    assert "\n" not in str(full.value)
    raw = (tmp_path / "results.jsonl").read_bytes()
    assert 12 <= len(load_study(tmp_path)) < 60
    assert raw.endswith(b"\n")  # the row that did not fit was taken back
    assert len(study.run(tmp_path, False, limit=10)) == 60
    lines = (tmp_path / "results.jsonl").read_bytes()
    assert lines.startswith(raw)
    assert lines.count(b"\n") == 61


TMPFS = """
import json, subprocess, sys
import killed_study
from rlm_loop.study import StudyError, load_study
study, there = killed_study.study(), sys.argv[1]
try:
    study.run(there + "/out", False, limit=10)
except StudyError as error:
    said = str(error)
kept = len(load_study(there + "/out"))
subprocess.run(["mount", "-o", "remount,size=64m", there], check=True)
rows = study.run(there + "/out", False, limit=10).rows
print(json.dumps([said, kept, len(rows), len({(r["arm"], r["task"], r["seed"]) for r in rows})]))
"""


@pytest.mark.slow
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    """A file system of 200 kB, in a mount name space of its own; skipped where that is not allowed."""
    inside = f'mount -t tmpfs -o size=200k tmpfs "$0" && exec "{sys.executable}" -c "$1" "$0"'
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    there = str(tmp_path)
    if not shutil.which("unshare") or subprocess.run([*words, 'mount -t tmpfs tmpfs "$0"', there]).returncode:
        pytest.skip("mounts are not allowed here")
    done = subprocess.run([*words, inside, there, TMPFS], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    said, kept, rows, distinct = json.loads(done.stdout)
    assert ("No space left on device" in said, "make room and run the same command again" in said) == (True, True)
    assert 5 < kept < rows == distinct == 60
