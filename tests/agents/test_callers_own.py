"""What the caller handed in stays the caller's (semantics 50), and reaches sub-agents (52)."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_loop import LeanAgent, ToolLoopAgent, tool
from rlm_loop.models import ModelError, ScriptedModel
from rlm_loop.repl import PythonREPL, open_repl
from rlm_loop.tasks import Attempt, Score, Task
from rlm_loop.traces import Trace
from rlm_loop.workspace import Workspace


@tool
def twice(n: int) -> int:
    """Twice a number."""
    return 2 * n


@pytest.mark.parametrize("kind", ["subprocess", "restricted"])
def test_a_session_serves_one_run_after_the_other(kind: str) -> None:
    with open_repl(kind) as session:
        cells = ["x = twice(len(context))", "final_answer = x"]
        first = ToolLoopAgent(model=ScriptedModel([f"```python\n{c}\n```" for c in cells]), repl=session, tools=[twice])
        assert first.run("q", context="abc").answer == 6
        assert session.run("x + 1").output.strip() == "7"
        assert session.run("twice(1)").error == "runtime"  # a tool of a run is gone with it
        second = ToolLoopAgent(model=ScriptedModel(["```python\nfinal_answer = (x, context)\n```"]), repl=session)
        assert second.run("q", context="de").answer == (6, "de")


def test_a_lent_session_is_given_back_after_a_failure() -> None:
    thrice = tool(name="thrice")(twice.function)
    with PythonREPL() as lent:
        lent.set("thrice", 3)
        lent.run("context = 'own'")
        dies = ["```python\nimport os; os._exit(1)\n```", "```python\nlen(context)\n```"]
        with pytest.raises(ModelError):  # no reply is left
            ToolLoopAgent(model=ScriptedModel(dies), repl=lent, tools=[twice]).run("q", context="abc")
        assert lent.run("context").output.endswith("'own'")
        assert lent.run("twice").message.startswith("NameError")
        with pytest.raises(ValueError, match="'thrice'"):
            ToolLoopAgent(model=ScriptedModel(dies), repl=lent, tools=[thrice]).run("q", context="abc")
        assert lent.run("thrice, context").output == "(3, 'own')"


def test_a_session_that_was_made_for_a_run_ends_with_it() -> None:
    made: list[PythonREPL] = []

    def make() -> PythonREPL:
        made.append(PythonREPL())
        return made[-1]

    ToolLoopAgent(model=ScriptedModel(["```python\nfinal_answer = 1\n```"]), repl=make).run("q")
    with pytest.raises(RuntimeError, match="closed"):
        made[0].run("1")


def test_a_workspace_and_a_trace_are_left_open(tmp_path: Path) -> None:
    with Workspace({"a.py": "x = 1\n"}) as space, Trace(tmp_path / "t.jsonl") as trace:
        for n in range(2):
            LeanAgent(model=ScriptedModel(["done"])).run("q", workspace=space, trace=trace)
            (space.root / "a.py").write_text(f"x = {n + 5}\n", "utf-8")
            assert f"x = {n + 5}" in space.diff()
            trace.record("own", n=n)


def test_tools_of_the_task_and_of_the_agent_reach_sub_agents() -> None:
    @tool
    def thrice(n: int) -> int:
        """Thrice a number."""
        return 3 * n

    def unscored(_: Attempt) -> Score:
        return Score(True, 1.0, "")

    model = ScriptedModel(
        [
            "```python\nfinal_answer = llm_query('go')\n```",
            "```python\nfinal_answer = twice(1) + thrice(1)\n```",
        ]
    )
    agent = ToolLoopAgent(model=model, tools=[twice], max_depth=2)
    assert agent.attempt(Task("t", "q", unscored, tools=(thrice,))).answer == "5"
    told = "".join(message.text for message in model.prompts[1].messages)
    assert "twice(" in told
    assert "thrice(" in told
