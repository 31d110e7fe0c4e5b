"""Ctrl-C in a run: the cell stops, the host lives, and `Interrupted` has what was done until then; cleaning up."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.accounting import tree_of
from rlm_loop.agents import Agent, Interrupted, outcome_of
from rlm_loop.models import ScriptedModel, Usage
from rlm_loop.repl import PythonREPL
from rlm_loop.tasks import Score, Task
from rlm_loop.traces import read
from tests.agents.replies import broken_off, calls, code, main_only, named
from tests.repl.processes import press, until

FIRST = "kept = [1]\nprint('one')"
SECOND = "print('partial')\nfinal_answer = 5\npress()\nwhile True: pass"
THIRD = "never = 1"
WAYS = [ToolLoopAgent(), LeanAgent(presentation="native"), ReActAgent(form="calls", presentation="native")]


@pytest.fixture
def repl() -> Iterator[PythonREPL]:
    with PythonREPL(grace=60) as session:
        yield session


def interrupted(agent: Agent, **options: Any) -> Any:
    """The outcome of a run that Ctrl-C ends."""
    with pytest.raises(Interrupted) as caught:
        agent.attempt(Task("t", "Work.", lambda _: Score(True), needs_repl=True), **options)
    return caught.value.outcome


@main_only
@pytest.mark.parametrize("agent", WAYS, ids=lambda agent: agent.name)
def test_what_was_done_is_in_the_outcome_and_in_the_trace(agent: Agent, repl: PythonREPL, tmp_path: Path) -> None:
    replies: list[Any] = [code(FIRST), code(SECOND, THIRD)]
    if not isinstance(agent, ToolLoopAgent):
        replies = [calls(*[("python", {"code": c}) for c in cells]) for cells in ((FIRST,), (SECOND, THIRD))]
    path = tmp_path / "t.jsonl"
    outcome = interrupted(replace(agent, model=ScriptedModel(replies), repl=repl, tools=(press,)), trace=path)
    assert (outcome.stop, outcome.steps, outcome.answer) == ("interrupted", 2, 5)
    assert (outcome.trace, outcome.usage.calls) == (str(path), 2)
    cell, rest = outcome.turns[1].observations
    assert (cell.failure.kind, rest.failure.kind, cell.text[:8]) == ("interrupted", "skipped", "partial\n")
    assert "interrupted by the user; all variables are kept" in cell.text
    back = outcome_of(read(path))
    assert [t.observations for t in back.turns] == [t.observations for t in outcome.turns]
    assert (back.answer, back.stop) == (5, "interrupted")
    # the session lives, and so do its variables
    again = ToolLoopAgent(model=ScriptedModel([code("final_answer = kept")]), repl=repl).run("?")
    assert again.answer == [1]


def test_an_interrupted_model_call_is_one_call_of_unknown_tokens(tmp_path: Path) -> None:
    model = ScriptedModel([code("x = 1"), KeyboardInterrupt()])
    outcome = interrupted(ToolLoopAgent(model=model), trace=tmp_path / "t.jsonl")
    record = read(tmp_path / "t.jsonl")
    assert [call.usage == Usage(None, None) for call in outcome.ledger.calls] == [False, True]
    assert (outcome.usage.calls, outcome.usage.input_tokens, outcome.usage.output_tokens) == (2, None, None)
    assert record.end["usage"]["input_tokens"] is None
    assert outcome_of(record).usage == tree_of(record).total() == outcome.usage
    assert outcome_of(record).ledger.calls == outcome.ledger.calls


@main_only
def test_in_a_tool_it_is_the_same() -> None:
    wait = named("wait", lambda: press() or threading.Event().wait(60))
    model = ScriptedModel([calls(("wait", {}), ("wait", {}))])
    (turn,) = interrupted(LeanAgent(model=model, presentation="native", tools=(wait,))).turns
    assert [seen.failure.kind for seen in turn.observations] == ["interrupted", "skipped"]


NOTED = """
import signal
signal.signal(signal.SIGINT, lambda *_: open('noted', 'w').close())
print('partial', flush=True)
press()
while True: pass
"""


@main_only
def test_a_second_one_kills_the_worker_and_the_run_is_still_accounted_for(tmp_path: Path) -> None:
    with PythonREPL(launcher="plain", grace=600, timeout=600) as repl:
        repl.run("x = 1")
        pid = repl.get("__import__('os').getpid()")
        noted = repl.cwd / "noted"  # the first has reached the cell
        thread = threading.Thread(target=lambda: until(noted.exists) and press(), daemon=True)
        thread.start()
        agent = ToolLoopAgent(model=ScriptedModel([code("y = 2"), code(NOTED)]), repl=repl, tools=(press,))
        outcome = interrupted(agent, trace=tmp_path / "t.jsonl")  # a test that hangs here waits for the grace time
        thread.join()
        (seen,) = outcome.turns[1].observations
        assert (outcome.steps, seen.failure.kind) == (2, "interrupted")
        assert read(tmp_path / "t.jsonl").end["stop"] == outcome.stop == "interrupted"
        assert repl.get("__import__('os').getpid()") != pid
        assert repl.run("x, y").output.endswith("(1, 2)")  # rebuilt from the journal


IN_THE_NOTEBOOK = """
def begun():
    "Say that the cell runs."
    print("begun", flush=True)

model = scripted("print('partial')\\nbegun()\\nwhile True: pass")
try:
    ToolLoopAgent(model=model, tools=(begun,), budget=Budget(cell_seconds=600)).run("?", trace={trace!r})
except KeyboardInterrupt as interrupted:
    seen = interrupted.outcome.turns[-1].observations[0]
    print(interrupted.outcome.stop, seen.failure.kind, seen.text.split()[0])
"""


def test_the_stop_button_of_a_notebook(tmp_path: Path) -> None:
    """In a real kernel, by a real interrupt request: the cell stops and the kernel lives."""
    from tests.report.notebook.test_in_kernel import SETUP, Kernel  # skips where no kernel is installed

    trace = str(tmp_path / "t.jsonl")
    with closing(Kernel(tmp_path)) as kernel:
        kernel.run(SETUP)
        heard = kernel.run(IN_THE_NOTEBOOK.format(trace=trace), until=lambda heard: "begun" in heard.text)
        assert (heard.text, heard.error) == ("begun\ninterrupted interrupted partial\n", [])
        assert kernel.run("print(model.name)").text == "scripted\n"
    assert read(trace).end["stop"] == "interrupted"


# -- cleaning up: what goes wrong there takes nothing away, and one Ctrl-C does not break it off


class Unwritable(Exception):
    def __str__(self) -> str:
        raise ValueError("not even its text")


class Jammed(PythonREPL):
    """A session that is closed, and raises then."""

    error: BaseException = OSError("jammed")

    def close(self) -> None:
        super().close()
        raise self.error


def run(session: Callable[..., PythonREPL], *replies: Any) -> Any:
    model = ScriptedModel(replies or [code("final_answer = 5")])
    return ToolLoopAgent(model=model, repl=lambda: session(launcher="plain")).run("How much?")


@pytest.mark.parametrize("error", [OSError(28, "No space left"), RecursionError("deep"), Unwritable()])
def test_a_session_that_cannot_be_closed_takes_no_outcome_away(error: Exception, caplog: Any) -> None:
    outcome = run(type("Own", (Jammed,), {"error": error}))
    assert (outcome.stop, outcome.answer) == ("answered", 5)
    assert f"the session could not be closed: {type(error).__name__}" in caplog.text


@broken_off
def test_nor_does_it_take_the_place_of_an_exception(breaks: Any, error: Any, stop: str) -> None:
    with pytest.raises(error) as caught:
        run(Jammed, code("kept = 1"), breaks)
    assert (caught.value.outcome.stop, caught.value.outcome.steps) == (stop, 1)


@main_only
def test_ctrl_c_waits_for_the_end_of_cleaning_up_and_a_second_one_does_not() -> None:
    done: list[int] = []

    class Pressed(PythonREPL):
        def close(self) -> None:
            super().close()
            for times in (1, 2):
                signal.raise_signal(signal.SIGINT)
                done.append(times)

    with pytest.raises(KeyboardInterrupt):
        run(Pressed)
    assert done == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@main_only
def test_ctrl_c_while_a_session_is_closed_leaves_nothing() -> None:
    class Pressed(PythonREPL):
        def close(self) -> None:
            signal.raise_signal(signal.SIGINT)
            super().close()

    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    opened = Pressed(launcher="plain")
    with pytest.raises(Interrupted) as caught:
        run(lambda **_: opened)
    assert caught.value.outcome.answer == 5
    assert not before or len(os.listdir("/proc/self/fd")) <= before
