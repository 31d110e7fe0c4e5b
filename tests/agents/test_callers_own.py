"""What the caller handed in stays the caller's (semantics 50), and reaches sub-agents (52)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.agents import Agent, Rules
from rlm_loop.models import ModelError, ScriptedModel
from rlm_loop.repl import PythonREPL
from rlm_loop.replay import replay
from rlm_loop.tasks import Score, Task
from rlm_loop.tools import SimpleTool, ToolGateway
from rlm_loop.traces import Trace
from rlm_loop.workspace import Workspace
from tests.agents.replies import LOCAL, call, cell, code, final, named

twice, thrice = named("twice", lambda n: 2 * n), named("thrice", lambda n: 3 * n)


def agent(*cells: str, **settings: Any) -> ToolLoopAgent:
    return ToolLoopAgent(model=ScriptedModel([code(cell) for cell in cells]), **settings)


def test_a_lent_session_is_given_back_after_a_failure() -> None:
    with PythonREPL() as lent:
        lent.set("thrice", 3)
        lent.run("context = 'own'")
        dies = ["import os; os._exit(1)", "len(context)"]
        with pytest.raises(ModelError):  # no reply is left
            agent(*dies, repl=lent, tools=[twice]).run("q", context="abc")
        assert lent.run("context").output.endswith("'own'")
        assert lent.run("twice").message.startswith("NameError")
        with pytest.raises(ValueError, match="'thrice'"):
            agent(*dies, repl=lent, tools=[thrice]).run("q", context="abc")
        assert lent.run("thrice, context").output == "(3, 'own')"


def test_a_workspace_and_a_trace_are_left_open(tmp_path: Path) -> None:
    with Workspace({"a.py": "x = 1\n"}) as space, Trace(tmp_path / "t.jsonl") as trace:
        for n in range(2):
            lean = LeanAgent(model=ScriptedModel(["done"] * 2))
            lean.run("q", workspace=space, trace=trace)
            with lean.session(workspace=space, trace=trace) as questions:
                questions.ask("q")
            (space.root / "a.py").write_text(f"x = {n + 5}\n", "utf-8")
            assert f"x = {n + 5}" in space.diff()
            trace.record("own", n=n)


def test_lists_stay_as_they_are() -> None:
    tools, hooks, injectors, allow = [twice], [object()], list[Any](), ["twice"]
    model = ScriptedModel(["42"], name=LOCAL)
    LeanAgent(model=model, tools=tools, hooks=hooks, injectors=injectors, rules=Rules(allow=allow)).run("?")
    assert (tools, len(hooks), injectors, allow) == ([twice], 1, [], ["twice"])
    assert "twice(" in model.prompts[0].messages[0].text


def test_tools_of_the_task_and_of_the_agent_reach_sub_agents() -> None:
    made = agent("final_answer = llm_query('go')", "final_answer = twice(1) + thrice(1)", tools=[twice], max_depth=2)
    assert made.attempt(Task("t", "q", lambda _: Score(True), tools=(thrice,))).answer == "5"
    told = "".join(message.text for message in made.model.prompts[1].messages)
    assert ("twice(" in told, "thrice(" in told) == (True, True)


# -- a session among the tools: one tool of a loop of calls, with its state


@pytest.fixture
def repl() -> Iterator[PythonREPL]:
    with PythonREPL(launcher="plain") as session:
        yield session


@pytest.mark.parametrize("agent", [LeanAgent(), ReActAgent(), ToolLoopAgent()], ids=lambda agent: agent.name)
@pytest.mark.parametrize("whole", [True, False], ids=["session", "its-tool"])
def test_it_keeps_its_state_and_stays_open(agent: Agent, repl: PythonREPL, whole: bool, tmp_path: Path) -> None:
    repl.run("mine = 7")
    replies = [cell(agent, text) for text in ("x = 20", "1 / 0", "print(x + 1)")]
    model, path = ScriptedModel([*replies, final(agent, 21)]), tmp_path / "t.jsonl"
    outcome = replace(agent, model=model, tools=[repl if whole else repl.as_tool()]).run("?", trace=path)
    texts = [o.text for turn in outcome.turns for o in turn.observations]
    assert ("ZeroDivisionError" in texts[1], texts[2].strip()) == (True, "21")
    assert (outcome.answer, repl.get("mine + x"), replay(path).same) == (21, 27, True)


def test_it_is_offered_where_the_task_needs_no_repl(repl: PythonREPL) -> None:
    model = ScriptedModel([call("python", code="x = 20"), call("final_answer", answer=21)])
    assert LeanAgent(model, tools=[repl]).attempt(Task("t", "?", 21, needs_repl=False)).answer == 21
    assert repl.get("x") == 20


def test_it_fits_the_smallest_tool_protocol(repl: PythonREPL) -> None:
    made, gate = repl.as_tool(), ToolGateway([repl])
    assert isinstance(made, SimpleTool)
    assert made.run(input_data="print(1)").strip() == "1"
    assert gate.call("python", {"input_data": "2 + 3"}).text.strip() == "5"
