"""`approve=` is told of an action before it runs, and what it refuses does not run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rlm_loop import LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.actions import CallTool, RunCode
from rlm_loop.agents import Approve, Rules
from rlm_loop.models import ScriptedModel
from rlm_loop.replay import replay
from rlm_loop.traces import RunRecord, Trace

CELL = "```python\nfound = delete(name='a')\n```"
CALL = '{"name": "delete", "arguments": {"name": "a"}}'
REACT = 'Thought: I do.\nAction: delete\nAction Input: {"name": "a"}'
DONE = {ToolLoopAgent: "Done.", LeanAgent: "Done.", ReActAgent: "Thought: x\nAction: finish\nAction Input: Done."}


def run(agent: type[Any], approve: Any, *replies: str) -> tuple[Any, list[str], Trace]:
    done: list[str] = []

    def delete(name: str) -> str:
        """Delete a file."""
        done.append(name)
        return "gone"

    trace = Trace()
    model = ScriptedModel([*replies, DONE[agent]])
    outcome = agent(model=model, tools=(delete,), repl="plain", rules=Rules(approve=approve)).run(
        "Tidy up.", trace=trace
    )
    return outcome, done, trace


def says(value: Any) -> Approve:
    return lambda action: value


def raising(action: object) -> bool:
    raise EOFError("no terminal")


@pytest.mark.parametrize(("agent", "reply"), [(ToolLoopAgent, CELL), (LeanAgent, CALL), (ReActAgent, REACT)])
@pytest.mark.parametrize(
    ("approve", "runs", "told"),
    [
        (says(True), True, None),
        (says(None), True, None),
        (says(False), False, "not approved"),
        (says("not in production"), False, "not approved: not in production"),
        (raising, False, "not approved: nobody could be asked (EOFError: no terminal)"),
        (says(1), False, "approve returns True, False or a reason, not 1"),
    ],
)
def test_what_is_not_approved_does_not_run(
    agent: type[Any], reply: str, approve: Any, runs: bool, told: str | None
) -> None:
    outcome, done, trace = run(agent, approve, reply)
    assert (outcome.answered, done) == (True, ["a"] if runs else [])
    seen = outcome.turns[0].observations[0]
    assert (seen.failure and seen.failure.kind) == (None if runs else "denied")
    assert told is None or told in seen.text
    assert {e["approved"] for e in trace.events if e["event"] == "approval"} == {runs}
    assert replay(RunRecord(tuple(trace.events))).same


def test_a_call_in_a_cell_and_in_a_sub_agent_is_asked_for_itself() -> None:
    asked: list[str] = []

    def approve(action: RunCode | CallTool) -> bool:
        asked.append(action.name if isinstance(action, CallTool) else "cell")
        return not isinstance(action, CallTool)

    outcome, done, _ = run(ToolLoopAgent, approve, CELL)
    assert (asked, done) == (["cell", "delete"], [])
    assert "denied" in outcome.turns[0].observations[0].text
    asked.clear()
    model = ScriptedModel(["```python\nfinal_answer = llm_query('go')\n```", "```python\nfinal_answer = 5\n```"])
    outcome = ToolLoopAgent(model=model, max_depth=2, repl="plain", rules=Rules(approve=approve)).run("?")
    assert (outcome.answer, asked) == ("5", ["cell", "cell"])


def test_the_python_tool_is_asked_once_and_sees_the_code() -> None:
    asked: list[str] = []
    call = json.dumps({"name": "python", "arguments": {"code": "1 + 1"}})

    def approve(action: RunCode | CallTool) -> None:
        asked.append(action.arguments if isinstance(action, CallTool) else "")

    run(LeanAgent, approve, call)
    assert [json.loads(a) for a in asked] == [{"code": "1 + 1"}]
