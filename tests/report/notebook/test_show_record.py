"""Traces and outcomes in a notebook: what is shown is what was recorded, and nothing of it becomes markup."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from rlm_loop import ToolLoopAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.traces.reader import RunRecord, read
from rlm_loop.traces.trace import Trace

BAD = "<script>alert(1)</script>``` **bold** [a](javascript:x) $x$"


def block(code: str) -> str:
    return f"```python\n{code}\n```"


@pytest.fixture
def record(tmp_path: Path) -> RunRecord:
    model = ScriptedModel([block(f"print({BAD!r})"), block("1/0"), block(f"final_answer = {BAD!r}")])
    ToolLoopAgent(model=model).run(f"How many? {BAD}", trace=tmp_path / "t.jsonl")
    return read(tmp_path / "t.jsonl")


def test_a_record_shows_question_answer_turns_and_what_failed(record: RunRecord) -> None:
    page = record._repr_html_()
    text = html.unescape(re.sub(r"<[^>]+>", " ", page))
    for part in ("answered", "How many?", "turn 1: code", "turn 2: code, failed: runtime", "turn 3", "3 turns"):
        assert part in text
    assert f"{len(record.events)} events" in text
    assert "<script" not in page
    assert html.escape("<script>alert(1)</script>") in page
    assert repr(record) == "<RunRecord code with scripted: answered, 3 turns>"


def test_a_record_without_an_end_says_so(record: RunRecord) -> None:
    torn = RunRecord(record.events[:-1])
    assert "no end" in torn._repr_html_()
    assert "killed, or is still going on" in torn._repr_html_()
    assert "no end" in repr(torn)


def test_a_trace_in_memory_shows_its_last_run_and_one_in_a_file_where_it_is(tmp_path: Path) -> None:
    memory = Trace()
    assert "an empty trace" in memory._repr_html_()
    for answer in (41, 42):
        ToolLoopAgent(model=ScriptedModel([block(f"final_answer = {answer}")])).run("?", trace=memory)
    assert "42" in memory._repr_html_()
    with Trace(tmp_path / "<t>.jsonl") as trace:
        assert "&lt;t&gt;.jsonl" in trace._repr_html_()
