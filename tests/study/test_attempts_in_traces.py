"""An episode that was broken off and tried again: the trace says so, and everything reads the attempt of the row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import ToolLoopAgent
from rlm_loop.models import ModelError, ScriptedModel
from rlm_loop.outcome import Outcome
from rlm_loop.study import Study, load_study, verify_traces
from rlm_loop.tasks import Attempt, Score, Suite, Task
from rlm_loop.traces import Trace, read, read_all


@dataclass(frozen=True)
class Agent:
    """One attempt after the other, each with replies of its own."""

    attempts: list[Sequence[Any]]

    def settings(self) -> dict[str, Any]:
        return {"agent": "Agent"}

    def attempt(self, task: Task, *, trace: Any = None) -> Outcome:
        return ToolLoopAgent(model=ScriptedModel(self.attempts.pop(0), name="m")).attempt(task, trace=trace)


GOOD = ["```python\nfinal_answer = 4\n```"]
DOWN = ["```python\nprint(1)\n```", ModelError("the provider is down")]


def right(attempt: Attempt) -> Score:
    return Score(attempt.answer == 4, float(attempt.answer == 4), "")


def study(*attempts: Sequence[Any]) -> Study:
    return Study("mine", {"a": Agent(list(attempts))}, Suite("s", (Task("t", "2 + 2?", right),)), model="m")


def test_an_attempt_that_failed_and_was_tried_again_does_not_count(tmp_path: Path) -> None:
    mine = study(DOWN, GOOD)
    failed = mine.run(tmp_path, False).rows[0]
    assert read(tmp_path / failed["trace"]).aborted is None  # it is what the row is about
    row = mine.run(tmp_path, False, retry_failed=True).rows[0]
    first, second = read_all(tmp_path / row["trace"])
    assert (first.id, first.aborted, second.aborted) == (failed["trace_run"], "it was broken off and tried again", None)
    assert read(tmp_path / row["trace"]).id == load_study(tmp_path).trace(row).id == row["trace_run"] == second.id
    assert verify_traces(tmp_path) == []


def test_a_later_attempt_that_was_killed_takes_nothing_from_the_row(tmp_path: Path) -> None:
    row = study(GOOD).run(tmp_path, False).rows[0]
    with Trace(tmp_path / row["trace"]) as killed:
        killed.start(task="t")
    assert read(tmp_path / row["trace"]).end is None
    assert load_study(tmp_path).trace(row).end is not None
    assert verify_traces(tmp_path) == []


@pytest.mark.parametrize("content", [b"", b"not a trace\n", b'{"event":"reply"}\n'])
def test_what_is_no_trace_does_not_stop_an_episode(tmp_path: Path, content: bytes) -> None:
    mine = study(GOOD)
    path = tmp_path / "traces" / "a" / "s--t--0.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    (row,) = mine.run(tmp_path, False).rows
    assert row["error"] is None
