"""The first study of `docs/start.md`, run as a new user runs it: copied from the page, its model named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import docs_examples as docs
import pytest
from lazy import needs
from loopback import Loopback, chat

from rlm_loop.study import load_study

pytestmark = needs("pandas", "matplotlib", extra="studies")
PAGE = docs.ROOT / "docs" / "start.md"

#: What the model replies to a question: a block of Python to the loop that runs code, words to the other.
REPLIES = {
    "sum of their euros": ("final_answer = int(unpaid['euros'].sum())", "130"),
    "were not paid": ("unpaid = context[context['paid'] == 'n']\nfinal_answer = len(unpaid)", "There are 3."),
    "the paid orders": ("final_answer = int(context[context['paid'] == 'y']['euros'].sum())", "210"),
    "most orders": ("final_answer = int(context['month'].mode()[0])", "2"),
}


def reply(asked: Any) -> str:
    question = [m["content"] for m in asked["messages"] if m["role"] == "user"][-1]
    code, words = next(said for part, said in REPLIES.items() if part in question)
    return words if asked.get("tools") else f"```python\n{code}\n```"


def script() -> str:
    (block,) = [b for b in docs.blocks(PAGE) if b.kind == "python" and "orders.png" in b.text]
    return block.text


def test_the_page_is_short() -> None:
    assert len([line for line in script().splitlines() if line.strip()]) <= 15
    assert max(map(len, script().splitlines())) <= 120
    assert len(PAGE.read_text(encoding="utf-8").split()) < 1000


@pytest.mark.slow  # four seconds of imports and drawing, in a process of its own
def test_the_script_of_the_page_does_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text(script(), encoding="utf-8")
    with Loopback(chat(reply)) as server:
        named = {"RLM_LOOP_MODEL": f"openai-compatible:m@{server.address}/v1", "PYTHONPATH": str(docs.ROOT)}
        command = [sys.executable, "first.py"]
        done = subprocess.run(command, cwd=tmp_path, env={**os.environ, **named}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["3", "130", "orders: run of 6 episodes, 5 resolved, 0 crashed"]
    found = load_study(tmp_path / "runs" / "orders")
    resolved = {arm: [r["resolved"] for r in found.filter(arm=arm).rows] for arm in found.arms}
    assert resolved == {"code": [True, True, True], "calls": [True, False, True]}
    plot = (tmp_path / "orders.png").read_bytes()
    assert plot.startswith(b"\x89PNG\r\n")
    assert b"Resolve rate against tokens" in plot  # what it shows, for readers who do not see it
