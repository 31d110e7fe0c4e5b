"""Traces and outcomes in a notebook: what is shown is what was recorded, and nothing of it becomes markup."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_loop import ToolLoopAgent
from rlm_loop.models import ScriptedModel
from rlm_loop.report.notebook.markdown import fenced, inline, table
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


def test_a_record_as_markdown(record: RunRecord) -> None:
    shown = record._repr_markdown_()
    assert shown.startswith("**answered**")
    assert "turn 2: code, failed: runtime" in shown.replace("\\", "")
    outside = re.sub(r"(`{3,})\n.*?\n\1", "", shown, flags=re.S)
    assert "<script>" not in outside
    assert "**bold**" not in outside
    assert "[a](javascript" not in outside


def test_a_record_without_an_end_says_so(record: RunRecord) -> None:
    torn = RunRecord(record.events[:-1])
    assert "no end" in torn._repr_html_()
    assert "killed, or is still going on" in torn._repr_html_()
    assert "no end" in torn._repr_markdown_()
    assert "no end" in repr(torn)


def test_a_trace_in_memory_shows_its_last_run_and_one_in_a_file_where_it_is(tmp_path: Path) -> None:
    memory = Trace()
    assert "an empty trace" in memory._repr_html_()
    for answer in (41, 42):
        ToolLoopAgent(model=ScriptedModel([block(f"final_answer = {answer}")])).run("?", trace=memory)
    assert "42" in memory._repr_html_()
    with Trace(tmp_path / "<t>.jsonl") as trace:
        assert "&lt;t&gt;.jsonl" in trace._repr_html_()


def test_an_outcome_as_markdown() -> None:
    model = ScriptedModel(["Look.\n" + block("print('one\\n```\\ntwo')"), block(f"final_answer = {BAD!r}")])
    outcome = ToolLoopAgent(model=model).run("How `many`?")
    shown = outcome._repr_markdown_()
    assert shown == outcome.to_markdown()
    assert "**turn 1**" in shown
    assert "```python\n" in shown  # code that holds no fence
    assert "````\none\n```\ntwo\n````" in shown
    assert "How \\`many\\`?" in shown
    assert "| cause | input tokens (exact) |" in shown
    outside = re.sub(r"^(`{3,})\w*\n.*?\n\1$", "", shown, flags=re.S | re.M)
    assert "<script>" not in outside
    assert outcome._repr_html_() == outcome.to_html()


@given(st.text())
def test_a_fence_is_longer_than_any_in_the_text(text: str) -> None:
    lines = fenced(text).split("\n")
    fence = lines[0]
    assert set(fence) == {"`"}
    assert lines[-1] == fence
    assert fence not in "\n".join(lines[1:-1])


@given(st.text())
def test_text_in_a_line_stays_in_the_line_and_is_no_markup(text: str) -> None:
    line = inline(text)
    assert "\n" not in line
    assert re.search(r"(?<!\\)(?:\\\\)*[<>*`_\[\]|$]", line) is None


def test_a_cell_cannot_break_out_of_its_table() -> None:
    assert table(("a", "b"), [("x|y", "1")]).splitlines()[-1] == "| x\\|y | 1 |"
