"""A session in the user's own namespace: what it works on, what it gives back, and how it is stopped."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from session_kinds import ipython_shell

from rlm_loop.actions import FinalAnswer
from rlm_loop.repl import NotebookREPL, open_repl

pytest.importorskip("IPython", reason='needs IPython: pip install -e ".[kernel]"')


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with ipython_shell(tmp_path_factory.mktemp("ipython")) as made:
        yield made


@pytest.fixture
def names(shell: Any) -> Iterator[dict[str, Any]]:
    """The user's variables, of this test alone."""
    before = dict(shell.user_ns)
    yield shell.user_ns
    shell.user_ns.clear()
    shell.user_ns.update(before)


def test_the_cells_work_on_the_users_own_objects(names: dict[str, Any]) -> None:
    mine = names["mine"] = [1]
    with NotebookREPL() as session:
        assert session.run("mine.append(2); mine").output == "[1, 2]"
        assert session.cwd == Path.cwd()
    assert names["mine"] is mine


def test_names_that_the_session_binds_are_given_back(names: dict[str, Any]) -> None:
    def lookup(word: str) -> str:
        return word.upper()

    names.update(context="the user's", final_answer="too", lookup=lookup)
    with NotebookREPL() as session:
        session.set("context", "the task's", reserved=True)
        session.add_tools({"add": lambda a: a + 1, "lookup": lookup})
        assert session.run("print(context, lookup('a'))").output == "the task's A\n"
        assert session.run("final_answer = add(1)").answer == FinalAnswer(2, "object")
        assert "final_answer" not in vars(builtins)
    assert (names["context"], names["final_answer"], names["lookup"]) == ("the user's", "too", lookup)
    assert "add" not in names
    assert "final_answer" not in vars(builtins)


def test_leaving_asking_and_stopping_do_not_reach_the_user(names: dict[str, Any]) -> None:
    with NotebookREPL() as session:
        for code, message in {
            "quit(3)": "SystemExit: 3",
            "breakpoint()": "RuntimeError: breakpoint() does not work here: nobody can type into this REPL",
        }.items():
            assert session.run(code).message == message
        session.run("exit = 4")
        assert session.run("exit").output == "4"
    assert "input" not in names


def test_functions_of_the_user_are_in_tracebacks(shell: Any, names: dict[str, Any]) -> None:
    shell.run_cell("def mine(x):\n    return 1 / x\n")
    with NotebookREPL() as session:
        output = session.run("mine(0)").output
    assert ("in mine" in output, output.splitlines()[-1]) == (True, "ZeroDivisionError: division by zero")


def test_a_time_limit_while_awaiting(names: dict[str, Any]) -> None:
    with NotebookREPL() as session:
        code = "import asyncio\nlog = []\ntry:\n    await asyncio.sleep(60)\nfinally:\n    log.append('cleaned up')"
        assert session.run(code, timeout=0.3).error == "timeout"
        assert session.run("log").output == "['cleaned up']"


def test_an_agent_by_name(names: dict[str, Any]) -> None:
    from rlm_loop import ToolLoopAgent
    from rlm_loop.models.scripted import ScriptedModel

    names["numbers"] = [1, 2, 3]
    model = ScriptedModel(["```python\nfinal_answer = sum(numbers)\ndoubled = 2 * final_answer\n```"])
    outcome = ToolLoopAgent(model=model, repl=lambda: open_repl("notebook")).run("What is the sum?")
    assert (outcome.answer, names["doubled"]) == (6, 12)
    with pytest.raises(ValueError, match="takes no files"):
        open_repl("notebook", files={"a": "b"})


def test_a_cell_awaits_while_the_notebooks_own_loop_is_running(names: dict[str, Any]) -> None:
    data = names["data"] = [1]
    with NotebookREPL() as session:

        async def as_in_a_notebook() -> str:
            code = (
                "import asyncio\nawait asyncio.sleep(0)\ndata.append(2)\nprint(asyncio.run(asyncio.sleep(0, 'slept')))"
            )
            output = session.run(code).output
            await asyncio.sleep(0)
            return output

        assert (asyncio.run(as_in_a_notebook()), data) == ("slept\n", [1, 2])
