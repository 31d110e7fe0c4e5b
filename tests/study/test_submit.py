"""An array of jobs: rows equal to those of one machine, also where a job was killed and the rest was sent again."""

from __future__ import annotations

import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rlm_loop.cli.main import main
from rlm_loop.study import Study, load_study, load_study_file, status, submit

pytest.importorskip("submitit")
FILE = """
import os, time
from rlm_loop import LeanAgent, ScriptedModel, Study, Task, ToolLoopAgent

def slow(attempt):
    while os.path.exists(os.environ.get("HOLD", "")) and attempt.answer == "3":
        time.sleep(0.05)
    return attempt.answer in ("1", "3", "4")

def study():
    arms = {"one": ToolLoopAgent(), "two": LeanAgent()}
    tasks = [Task(f"t{n}", f"Say {n}.", slow) for n in range(1, 6)]
    replies = lambda prompt: prompt.messages[-1].text.split("Say ")[1][0]
    return Study("array", arms, tasks, model=ScriptedModel([replies] * 20))
"""
TIMES = ("started", "seconds", "working_seconds", "model_seconds", "harness_seconds", "tool_seconds", "trace_run")


def rows(folder: Path) -> list[dict[str, Any]]:
    found = sorted(load_study(folder).rows, key=lambda row: (row["task"], row["arm"]))
    return [{k: v for k, v in row.items() if k not in TIMES} for row in found]


@pytest.fixture
def make(tmp_path: Path) -> partial[Study]:
    (tmp_path / "study.py").write_text(FILE)
    return partial(load_study_file, tmp_path / "study.py")


@pytest.mark.slow
def test_a_killed_job_is_sent_again_with_the_rows_of_one_machine(tmp_path: Path, make: Any, monkeypatch: Any) -> None:
    make().run(tmp_path / "here", progress=False)
    hold = tmp_path / "hold"
    hold.touch()
    monkeypatch.setenv("HOLD", str(hold))
    jobs = submit(make, tmp_path / "array", array=3, minutes=5, cluster="local")
    end = time.monotonic() + 100
    while len(load_study(tmp_path / "array").rows) < 6 and time.monotonic() < end:  # those before the held ones
        time.sleep(0.1)
    assert status(tmp_path / "array").running
    for job in jobs:
        subprocess.run(["pkill", "-KILL", "-P", str(job._process.pid)], check=False)
        job._process.kill()
        job._process.wait()
    hold.unlink()
    for job in submit(make, tmp_path / "array", array=3, minutes=5, cluster="local"):
        job.result()
        job._process.wait()
    assert rows(tmp_path / "array") == rows(tmp_path / "here")
    assert submit(make, tmp_path / "array", array=3, minutes=5, cluster="local") == []


def test_by_command(tmp_path: Path, make: partial[Study], monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    make().run("runs/array", progress=False)
    assert main(["study", "submit", "study.py", "--array", "2", "--time", "4h", "--cluster", "local"]) == 0
    assert "nothing is left" in capsys.readouterr().err
    assert main(["study", "submit", "study.py", "--array", "2", "--time", "soon"]) == 2
    assert "--time" in capsys.readouterr().err
