"""Call trees on the command line: while a run goes on, and afterwards."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from made_traces import Told
from rich.console import Console

from rlm_loop.actions import Observation, RunCode
from rlm_loop.cli.main import main
from rlm_loop.cli.steps import LiveSteps
from rlm_loop.messages import Reply, Usage
from rlm_loop.models import ScriptedModel
from rlm_loop.outcome import Turn

TEXT = "".join(f"record {i:04d} holds the value {i * 7919 % 10007:05d} for its owner\n" for i in range(1000))


@pytest.fixture
def trace(tmp_path: Path) -> str:
    told = Told(tmp_path / "run.jsonl", context=TEXT)
    told.turn("print(context[:480])", TEXT[:480])
    told.batch([f"count: {TEXT[i * 2400 : i * 2400 + 2400]}" for i in range(20)], ["3"] * 20)
    told.turn("n = 0\nfinal_answer = n", answer=60)
    told.end(60)
    told.trace.close()
    (tmp_path / "context.txt").write_text(TEXT, encoding="utf-8", newline="")
    return str(tmp_path / "run.jsonl")


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments), models=lambda name, **_: ScriptedModel([]))
    out, err = capsys.readouterr()
    return code, out, err


def test_show_has_the_tree_where_there_are_sub_calls(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, "trace", "show", trace)
    assert "20 completions" in out


# -- while a run goes on


def turn(index: int) -> Turn:
    return Turn(index, Reply("x", usage=Usage(5, 1)), (RunCode("llm_query('a')"),), (Observation("out"),), 0.1)


def test_steps_show_their_sub_calls() -> None:
    page = StringIO()
    live = LiveSteps(Console(file=page, width=200, force_terminal=True))
    live.on_step_start(turn_index=1)
    for i in range(1, 31):
        live.on_subcall_start(node=f"0.{i}", depth=1, kind="completion", model="m", prompt="p")
    for i in range(1, 31):
        live.on_subcall_end(
            node=f"0.{i}",
            depth=1,
            ok=i != 7,
            error="no" if i == 7 else None,
            answer="",
            seconds=1.0,
            usage=Usage(10, 1),
        )
    live.on_step_end(turn=turn(1))
    live.on_step_start(turn_index=2)
    live.on_step_end(turn=turn(2))
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", page.getvalue())
    assert shown.count("0.1 … 0.30 30 completions · turn 1 · 29 ok, 1 failed · 300 tokens in, 30 out") == 1
    assert shown.count("0.7 completion m") == 1
    assert "turn 2" in shown


def test_the_steps_of_a_sub_agent_are_not_the_roots() -> None:
    page = StringIO()
    live = LiveSteps(Console(file=page, width=200))
    live.on_step_start(turn_index=1)
    live.on_subcall_start(node="0.1", depth=1, kind="agent", model="m", prompt="p")
    live.on_step_start(turn_index=1)
    live.on_step_end(turn=turn(1))
    assert "turn 1 ──" not in page.getvalue()
    live.on_subcall_end(node="0.1", depth=1, ok=True, error=None, answer="", seconds=1.0, usage=Usage(10, 1))
    live.on_step_end(turn=turn(1))
    live.stop()
    assert page.getvalue().count("turn 1 ──") == 1
