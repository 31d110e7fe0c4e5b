"""What can be seen of a study while it runs, and after it was stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from study_arms import Arm, suite, unreachable

from rlm_loop.cli.main import main
from rlm_loop.study import Status, Study, StudyInterrupted, status
from rlm_loop.tasks import Task


def seen(folder: Path, jobs: int = 1) -> tuple[list[Status], Study]:
    """A study of six episodes of which one fails, and its status at the start of each."""
    found: list[Status] = []

    def look(task: Task) -> None:
        found.append(status(folder))
        if task.id == "s-2":
            raise unreachable()

    arms = {"a": Arm("a", 1, before=look), "b": Arm("b", 2)}
    study = Study("mine", arms, suite("s", 3), order_seed=None)
    study.run(folder, False, jobs=jobs)
    return found, study


def test_a_running_study_is_seen_from_outside(tmp_path: Path) -> None:
    found, _ = seen(tmp_path)
    assert [(s.running, s.planned, s.done, s.failed, s.left) for s in found] == [
        (True, 6, 0, 0, 6),
        (True, 6, 2, 0, 4),
        (True, 6, 3, 1, 2),
    ]
    assert [round(s.cost, 6) for s in found] == [0, 0.003, 0.005]
    assert found[2].errors == {"ModelError": 1}
    after = status(tmp_path)
    assert (after.running, after.done, after.failed, after.left) == (False, 5, 1, 0)


def test_a_study_that_was_stopped_says_so(tmp_path: Path) -> None:
    def stop(task: Task) -> None:
        if task.id == "s-2":
            raise KeyboardInterrupt

    with pytest.raises(StudyInterrupted):
        Study("mine", {"a": Arm(before=stop)}, suite("s", 3)).run(tmp_path, False)
    found = status(tmp_path)
    assert (found.running, found.done, found.left) == (False, 1, 2)
    assert found.lines()[-1] == "nothing is running; run the same command again to go on"


def test_unknown_costs_are_not_zero(tmp_path: Path) -> None:
    Study("mine", {"a": Arm()}, suite("s", 2)).run(tmp_path, False)
    path = tmp_path / "results.jsonl"
    lines = path.read_text().splitlines()
    without: dict[str, Any] = {**json.loads(lines[1]), "cost": None}
    path.write_text("\n".join([lines[0], json.dumps(without), lines[2]]) + "\n")
    assert "cost so far $0.002 and 1 episodes of unknown cost" in status(tmp_path).lines()[0]
    path.write_text("\n".join([lines[0], json.dumps(without)]) + "\n")
    assert "cost so far not known" in status(tmp_path).lines()[0]


def test_status_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = seen(tmp_path)
    said = "\n".join(found[2].lines())
    assert "3 of 6 episodes done, 1 failed, 2 left; cost so far $0.005" in said
    assert "failed: 1 x ModelError (--retry-failed)" in said
    assert main(["study", "status", str(tmp_path)]) == 0
    assert "5 of 6 episodes done, 1 failed, 0 left" in capsys.readouterr().out
    assert main(["study", "status", str(tmp_path / "nothing")]) == 2
    assert "holds no study" in capsys.readouterr().err
