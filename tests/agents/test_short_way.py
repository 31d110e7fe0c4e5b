"""The way of one question and of one cell stays short: calls of functions inside the package, counted.

Each count is the least of several, since a cell that takes long is waited for once more.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest

from rlm_loop import ToolLoopAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.repl import open_repl

REPLIES = ["```python\nx = 17 + 25\nprint(x)\n```", "```python\nfinal_answer = x\n```"]


def calls_of(work: Callable[[], Any]) -> list[str]:
    """The files of the package, one for each call of a function in them, in order."""
    files: list[str] = []

    def called(frame: Any, event: str, _: Any) -> None:
        if event == "call" and "/rlm_loop/" in frame.f_code.co_filename:
            files.append(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(before)
    return files


def test_a_question_of_two_turns_takes_few_calls(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "rlm_loop")  # a page's example may have turned log lines on
    counts: list[tuple[int, int]] = []
    for _ in range(6):
        agent = ToolLoopAgent(model=ScriptedModel(REPLIES), repl="plain")
        files = calls_of(lambda agent=agent: agent.run("What is 17 + 25?"))
        until = next(n for n, file in enumerate(files) if file.endswith("agents/run.py"))
        counts.append((len(files), until))
    assert min(counts[1:])[0] <= 450  # 1,555 on 22 November 2026
    assert min(until for _, until in counts[1:]) <= 75  # before the first turn; 284 then


def test_a_trivial_cell_takes_few_calls() -> None:
    with open_repl("plain") as session:
        session.start()
        counts = [len(calls_of(lambda: session.run("1"))) for _ in range(8)]
    assert min(counts) <= 27  # 71 on 22 November 2026; two look at the working folder
