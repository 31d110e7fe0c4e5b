"""A session among the tools: one tool of a loop of calls, with its state, and still the caller's afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlm_loop import LeanAgent, ReActAgent, Task, ToolLoopAgent
from rlm_loop.agents import Agent
from rlm_loop.models import ScriptedModel
from rlm_loop.repl import PythonREPL
from rlm_loop.replay import replay
from rlm_loop.tools import SimpleTool, ToolGateway


def call(code: str) -> str:
    return json.dumps({"tool": "python", "arguments": {"code": code}})


def react(code: str) -> str:
    return f"Thought: look.\nAction: python\nAction Input: {json.dumps({'code': code})}"


CELLS = ("x = 20", "1 / 0", "print(x + 1)")
DONE = '{"tool": "final_answer", "arguments": {"answer": 21}}'


@pytest.mark.parametrize(
    ("agent", "replies"),
    [
        (LeanAgent, [*map(call, CELLS), DONE]),
        (ReActAgent, [*map(react, CELLS), "Thought: done.\nAction: finish\nAction Input: 21"]),
        (ToolLoopAgent, [*(f"```python\n{c}\n```" for c in CELLS), "```python\nfinal_answer = x + 1\n```"]),
    ],
)
@pytest.mark.parametrize("whole", [True, False], ids=["session", "its-tool"])
def test_it_is_the_tool_keeps_its_state_and_stays_open(
    agent: type[Agent], replies: list[str], whole: bool, tmp_path: Path
) -> None:
    with PythonREPL(launcher="plain") as repl:
        repl.run("mine = 7")
        outcome = agent(ScriptedModel(replies), tools=[repl if whole else repl.as_tool()]).run(
            "?", trace=tmp_path / "t.jsonl"
        )
        assert str(outcome.answer) == "21"
        texts = [o.text for turn in outcome.turns for o in turn.observations]
        assert "ZeroDivisionError" in texts[1]
        assert texts[2].strip() == "21"
        assert repl.get("mine + x") == 27
    assert replay(tmp_path / "t.jsonl").same


def test_it_is_offered_where_the_task_needs_no_repl(tmp_path: Path) -> None:
    with PythonREPL(launcher="plain") as repl:
        agent = LeanAgent(ScriptedModel([call("x = 20"), DONE]), tools=[repl])
        assert agent.attempt(Task("t", "?", 21, needs_repl=False)).answer == 21
        assert repl.get("x") == 20


def test_it_fits_the_smallest_tool_protocol() -> None:
    with PythonREPL(launcher="plain") as repl:
        made = repl.as_tool()
        assert isinstance(made, SimpleTool)
        assert made.run(input_data="print(1)").strip() == "1"
        gate = ToolGateway([repl])
        assert [t.name for t in gate.tools] == ["python"]
        assert gate.call("python", {"input_data": "2 + 3"}).text.strip() == "5"


def test_two_sessions_are_refused() -> None:
    with pytest.raises(ValueError, match="give one"):
        LeanAgent(tools=[PythonREPL(), PythonREPL()])
