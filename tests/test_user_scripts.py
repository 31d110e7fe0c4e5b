"""Three scripts as a user would write them, of at most twelve lines each, run as they are against a server."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lazy import needs
from loopback import Loopback, chat

from rlm_loop.study import load_study

pytest.importorskip("pandas")
SCRIPTS = Path(__file__).parent / "scripts"


def reply(body: Any) -> str:
    """What the model says: the right thing in the form of whoever asks, but a wrong sum without code for 1 to 7."""
    question = [m["content"] for m in body["messages"] if m["role"] == "user"][-1]
    question = question if isinstance(question, str) else question[0]["text"]
    if found := re.search(r"sum of 1 to (\d+)", question):
        number = int(found[1])
        if body.get("tools"):
            return str(number * (number + 1) // 2 + (number == 7))
        return f"```python\nfinal_answer = sum(range({number + 1}))\n```"
    if "<code>" in str(body["messages"][0]["content"]):
        return "Thought: easy.\n<code>\nfinal_answer(2 * 3)\n</code>"
    if "2 * 3" in question:
        return "```python\nfinal_answer = 2 * 3\n```"
    end = "idxmax()" if "Which" in question else "max()"
    return f'```python\nfinal_answer = context.groupby("customer")["total"].sum().{end}\n```'


@pytest.fixture
def address() -> Iterator[str]:
    with Loopback(chat(reply)) as server:
        yield f"openai-compatible:m@{server.address}/v1"


def run(name: str, address: str, folder: Path) -> list[str]:
    source = (SCRIPTS / name).read_text(encoding="utf-8")
    assert len([line for line in source.splitlines() if line.strip()]) <= 12
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / name), address], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_a_question_about_ones_own_frame_and_another_one(address: str, tmp_path: Path) -> None:
    assert run("own_frame.py", address, tmp_path) == ["Ann", "40"]


@pytest.mark.slow
def test_a_study_is_planned_run_compared_and_drawn(address: str, tmp_path: Path) -> None:
    said = "\n".join(run("two_arms.py", address, tmp_path))
    assert "power of 6 tasks" in said
    assert "code against lean, on 6 tasks" in said
    assert (tmp_path / "sums.png").read_bytes().startswith(b"\x89PNG")
    found = load_study(tmp_path / "runs" / "sums")
    assert {arm: sum(r["resolved"] for r in found.filter(arm=arm).rows) for arm in found.arms} == {"code": 6, "lean": 5}


@needs("smolagents", extra="dev")
def test_somebody_elses_agent_is_an_arm(address: str, tmp_path: Path) -> None:
    run("foreign_agent.py", address, tmp_path)
    rows = [(row["arm"], row["resolved"], row["calls"]) for row in load_study(tmp_path / "runs").rows]
    assert rows == [("smol", True, 1), ("ours", True, 1)]
