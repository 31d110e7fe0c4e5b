"""Runs in the background: they leave the caller free, stop when they are asked to, and keep what was done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import Budget, ToolLoopAgent
from rlm_loop.agents import outcome_of
from rlm_loop.models import ModelError, ScriptedModel
from rlm_loop.report import LiveRun, start_live
from rlm_loop.traces import read


def block(code: str) -> str:
    return f"```python\n{code}\n```"


def begin(*replies: Any, tools: tuple[Callable[..., Any], ...] = (), **options: Any) -> LiveRun:
    agent = ToolLoopAgent(model=ScriptedModel(replies), tools=tools, budget=Budget(cell_seconds=600))
    return start_live(agent, "How many?", **{"show": False, **options})


def test_it_returns_at_once_and_gives_the_outcome_later() -> None:
    gate = threading.Event()

    def wait() -> None:
        """Wait for the test."""
        gate.wait(300)

    run = begin(block("wait()"), block("final_answer = context"), tools=(wait,), context=[1])
    assert run.running
    assert run.outcome is None
    assert run.wait(0.01) is None
    assert "under way" in repr(run)
    gate.set()
    outcome = run.wait(300)
    assert outcome is run.outcome
    assert outcome is not None
    assert outcome.answer == [1]
    assert not run.running
    assert "over" in repr(run)
    run.stop()  # too late to do anything
    assert run.wait() is outcome


def test_a_cell_is_stopped_and_what_was_done_is_kept(tmp_path: Path) -> None:
    busy = threading.Event()

    def begun() -> None:
        """Say that the cell runs."""
        busy.set()

    cell = block("print('partial')\nbegun()\nwhile True: pass")
    run = begin(block("kept = 1\nprint(kept)"), cell, tools=(begun,), trace=tmp_path / "t.jsonl")
    assert busy.wait(300)
    run.stop()
    run.stop()  # a second one does not kill
    outcome = run.wait(300)
    assert outcome is not None
    assert (outcome.stop, outcome.steps, run.error) == ("interrupted", 2, None)
    seen = outcome.turns[1].observations[0]
    assert seen.failure is not None
    assert seen.failure.kind == "interrupted"
    assert seen.text.startswith("partial\n")
    assert outcome_of(read(tmp_path / "t.jsonl")).stop == "interrupted"


def test_a_fault_is_raised_where_the_outcome_is_waited_for() -> None:
    run = begin(block("print(1)"), ModelError("no reply: try again"))
    with pytest.raises(ModelError, match="try again"):
        run.wait(300)
    assert run.outcome is not None
    assert run.outcome.steps == 1
    assert "ModelError" in repr(run)


def test_it_is_shown_where_it_was_started(capsys: pytest.CaptureFixture[str]) -> None:
    run = begin(block("final_answer = 1"), show=True)
    run.wait(300)
    told = capsys.readouterr().err
    assert "to stop: the stop button, or run.stop() in a cell" in told
    assert "answered: 1 turn" in told
    assert run.view is not None
    assert run.view.outcome is run.outcome


def test_a_stop_before_the_first_step_is_not_lost() -> None:
    began, gate = threading.Event(), threading.Event()

    class Slow:
        def on_run_start(self) -> None:
            began.set()
            gate.wait(300)

    agent = ToolLoopAgent(
        model=ScriptedModel([block("while True: pass")]), hooks=(Slow(),), budget=Budget(cell_seconds=600)
    )
    run = start_live(agent, "How many?", show=False)
    assert began.wait(300)
    run.stop()
    gate.set()
    outcome = run.wait(300)
    assert outcome is not None
    assert (outcome.stop, outcome.steps) == ("interrupted", 0)
