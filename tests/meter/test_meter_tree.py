"""The tree of what a meter found: every level sums to the one above, and the root to the bill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from upstream import Answer, upstream
from wires import post, user  # pyright: ignore

from rlm_loop.accounting import known_price
from rlm_loop.cli.main import main
from rlm_loop.meter import Branch, metered_endpoint, read_meter

SYSTEM = "You are an agent.\n# Tools\nUse them well.\n## Style\nBe brief.\n<env>\ncwd: /x\n</env>"
TOOLS = [
    {"name": name, "description": f"It does {name}. " * size, "input_schema": {"type": "object"}}
    for name, size in (("Read", 9), ("mcp__ten__one", 3), ("mcp__ten__two", 3), ("mcp__other__x", 1))
]


def reminder(words: str) -> dict[str, Any]:
    return {"type": "text", "text": f"<system-reminder>\n{words}\n</system-reminder>"}


def answer(new: int, read: int, written: int, *blocks: dict[str, Any]) -> Answer:
    usage = {"input_tokens": new, "cache_read_input_tokens": read, "cache_creation_input_tokens": written}
    made = {"id": "msg_1", "type": "message", "stop_reason": "end_turn", "usage": {**usage, "output_tokens": 10}}
    return Answer.of({**made, "content": blocks or [{"type": "text", "text": "Done."}]})


CALL = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a.txt"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "line one\nline two"}


def agent(url: str) -> None:
    """A task of two turns, whose reminder changes, and a title that is asked for beside it."""
    asked = {"model": "claude-sonnet-4-5", "max_tokens": 99}
    first = user([reminder("Today is Monday."), {"type": "text", "text": "Read a.txt."}])
    changed = user([reminder("Today is Tuesday."), {"type": "text", "text": "Read a.txt."}])
    more = [{"role": "assistant", "content": [CALL]}, user([RESULT, reminder("Keep going.")])]
    whole = {**asked, "system": SYSTEM, "tools": TOOLS}
    post(url, {**whole, "messages": [first]}, "/messages")
    post(url, {**asked, "messages": [user("A title of five words for: Read a.txt.")]}, "/messages")
    post(url, {**whole, "messages": [first, *more]}, "/messages")
    post(url, {**whole, "messages": [changed, *more]}, "/messages")


ANSWERS = (answer(100, 0, 900, CALL), answer(30, 0, 0), answer(50, 1000, 100), answer(1200, 0, 0))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with upstream(*ANSWERS) as up, metered_endpoint(forward=up.url, out=tmp_path) as url:
        agent(url)
    assert url.meter.frame().groupby("call")["tokens"].sum().tolist() == [1000, 30, 1150, 1200]
    return tmp_path


def by_name(branch: Branch) -> dict[str, Branch]:
    return {one.name: one for one in branch.children}


@pytest.mark.slow
def test_every_level_sums_to_the_one_above(folder: Path) -> None:
    (root,) = read_meter(folder).trees()
    assert (root.requests, root.first, root.total, root.output) == (4, 1000, 3380, 40)
    for _, one in root.lines():
        for field in ("total", "resent", "cached", "written"):
            parts = [getattr(child, field) for child in one.children]
            assert not parts or sum(parts) == getattr(one, field), (one.name, field)


def test_the_branches_are_conversation_cause_and_tool(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root,) = read_meter(folder).trees()
    main_, title = root.children
    assert (main_.requests, title.requests, title.total, title.per_turn) == (3, 1, 30, None)
    assert "4 tools" in main_.name
    assert "no tools" in title.name
    causes = by_name(main_)
    told = {"scaffold:reminder", "scaffold:environment", "task", "assistant", "tool_result", "template"}
    assert set(causes) == {"system", "tool_schema", *told}
    assert set(by_name(causes["system"])) == {"(other)", "Tools", "Style"}
    assert set(by_name(causes["scaffold:reminder"])) == {"system-reminder"}
    assert set(by_name(causes["tool_result"])) == {"Read"}
    assert set(by_name(causes["tool_schema"])) == {"Read", "mcp__ten__one", "mcp__ten__two", "mcp__other__x"}
    assert causes["tool_schema"].cacheable == pytest.approx(2 / 3, abs=0.05)
    assert causes["tool_result"].first == 0
    assert main(["meter", "--show", str(folder)]) == 0
    assert "mcp__ten__one" in capsys.readouterr().out


def test_what_a_reminder_cost(folder: Path) -> None:
    """By the price of the model: what was read from the cache and written to it is charged as such."""
    known: Any = known_price("anthropic/claude-sonnet-4-5")
    found = read_meter(folder)
    for call in found.sessions["default"][1]:
        call.model = "anthropic/claude-sonnet-4-5"  # the scripted provider is at no address that has prices
    (root,) = found.trees()
    expected = 1380 * known.input + 1000 * known.cached + 1000 * known.cache_write + 40 * known.output
    assert root.dollars == pytest.approx(expected / 1e6)
    reminders: Any = by_name(root.children[0])["scaffold:reminder"]
    assert 0 < reminders.dollars < root.dollars
