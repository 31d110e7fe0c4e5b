"""Ctrl-C in a run: the cell stops, the host lives, and `Interrupted` has what was done until then."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.accounting import tree_of
from rlm_loop.agents import Agent, Interrupted, outcome_of
from rlm_loop.models import Reply, ScriptedModel, ToolCall, Usage
from rlm_loop.repl import PythonREPL
from rlm_loop.tasks import Attempt, Score, Task
from rlm_loop.traces import read

main_only = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread"
)


def press() -> None:
    """Press Ctrl-C, as a terminal or a notebook does it, when the cell is where it calls this."""
    threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()


def score(_: Attempt) -> Score:
    return Score(True, 1.0, "")


FIRST = "kept = [1]\nprint('one')"
SECOND = "print('partial')\nfinal_answer = 5\npress()\nwhile True: pass"
THIRD = "never = 1"


def blocks(*cells: str) -> str:
    return "\n".join(f"```python\n{cell}\n```" for cell in cells)


def calls(*cells: str) -> Reply:
    return Reply("", tuple(ToolCall(str(n), "python", json.dumps({"code": c})) for n, c in enumerate(cells)))


WAYS: dict[str, tuple[Callable[..., Agent], list[Any]]] = {
    "code": (ToolLoopAgent, [blocks(FIRST), blocks(SECOND, THIRD)]),
    "calls": (
        lambda **more: LeanAgent(presentation="native", **more),
        [calls(FIRST), calls(SECOND, THIRD)],
    ),
    "react": (
        lambda **more: ReActAgent(form="calls", presentation="native", **more),
        [calls(FIRST), calls(SECOND, THIRD)],
    ),
}


@pytest.fixture
def repl() -> Iterator[PythonREPL]:
    with PythonREPL(grace=60) as session:
        yield session


@main_only
@pytest.mark.parametrize("name", WAYS)
def test_what_was_done_until_then_is_in_the_outcome_and_in_the_trace(
    name: str, repl: PythonREPL, tmp_path: Path
) -> None:
    make, replies = WAYS[name]
    agent = make(model=ScriptedModel(replies), repl=repl, tools=(press,))
    path = tmp_path / "t.jsonl"
    with pytest.raises(Interrupted) as caught:
        agent.attempt(Task("t", "Work.", score, needs_repl=True), trace=path)
    outcome = caught.value.outcome
    assert (outcome.stop, outcome.steps, outcome.answer) == ("interrupted", 2, 5)
    assert outcome.trace == str(path)
    assert outcome.usage.calls == 2
    cell, rest = outcome.turns[1].observations
    assert cell.failure is not None
    assert cell.failure.kind == "interrupted"
    assert cell.text.startswith("partial\n")
    assert "interrupted by the user; all variables are kept" in cell.text
    assert rest.failure is not None
    assert rest.failure.kind == "skipped"
    record = read(path)
    assert record.end is not None
    assert record.end["stop"] == "interrupted"
    back = outcome_of(record)
    assert [t.observations for t in back.turns] == [t.observations for t in outcome.turns]
    assert (back.answer, back.stop) == (5, "interrupted")
    # the session lives, and so do its variables
    again = ToolLoopAgent(model=ScriptedModel([blocks("final_answer = kept")]), repl=repl).run("?")
    assert again.answer == [1]


def test_an_interrupted_model_call_is_one_call_of_unknown_tokens(tmp_path: Path) -> None:
    agent = ToolLoopAgent(model=ScriptedModel([blocks("x = 1"), KeyboardInterrupt()]))
    with pytest.raises(Interrupted) as caught:
        agent.run("?", trace=tmp_path / "t.jsonl")
    outcome, record = caught.value.outcome, read(tmp_path / "t.jsonl")
    known, unknown = outcome.ledger.calls
    assert known.usage.input_tokens
    assert unknown.usage == Usage(None, None)
    assert (outcome.usage.calls, outcome.usage.input_tokens, outcome.usage.output_tokens) == (2, None, None)
    assert record.end is not None
    assert record.end["usage"]["input_tokens"] is None
    assert outcome_of(record).usage == tree_of(record).total() == outcome.usage
    assert outcome_of(record).ledger.calls == outcome.ledger.calls


@main_only
def test_in_a_tool_it_is_the_same(repl: PythonREPL) -> None:
    def wait() -> None:
        """Wait for something that never comes."""
        press()
        threading.Event().wait(60)

    agent = LeanAgent(
        model=ScriptedModel([Reply("", (ToolCall("1", "wait", "{}"), ToolCall("2", "wait", "{}")))]),
        presentation="native",
        tools=(wait,),
    )
    with pytest.raises(Interrupted) as caught:
        agent.run("?")
    (turn,) = caught.value.outcome.turns
    assert [o.failure.kind for o in turn.observations if o.failure is not None] == ["interrupted", "skipped"]


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

        def second() -> None:
            end = time.monotonic() + 60
            while time.monotonic() < end:
                if (repl.cwd / "noted").exists():  # the first has reached the cell
                    os.kill(os.getpid(), signal.SIGINT)
                    return
                time.sleep(0.01)

        thread = threading.Thread(target=second, daemon=True)
        thread.start()
        agent = ToolLoopAgent(model=ScriptedModel([blocks("y = 2"), blocks(NOTED)]), repl=repl, tools=(press,))
        with pytest.raises(Interrupted) as caught:
            agent.run("?", trace=tmp_path / "t.jsonl")  # a test that hangs here waits for the grace time
        thread.join()
        outcome = caught.value.outcome
        assert (outcome.stop, outcome.steps) == ("interrupted", 2)
        (seen,) = outcome.turns[1].observations
        assert seen.failure is not None
        assert seen.failure.kind == "interrupted"
        end = read(tmp_path / "t.jsonl").end
        assert end is not None
        assert end["stop"] == "interrupted"
        assert repl.get("__import__('os').getpid()") != pid
        assert repl.run("x, y").output.endswith("(1, 2)")  # rebuilt from the journal


IN_THE_NOTEBOOK = """
import sys
sys.path[:0] = {path!r}
from rlm_loop import Budget, ToolLoopAgent
from rlm_loop.agents import Interrupted
from rlm_loop.models import ScriptedModel

def begun():
    "Say that the cell runs."
    print("begun", flush=True)

cell = "```python\\nprint('partial')\\nbegun()\\nwhile True: pass\\n```"
try:
    agent = ToolLoopAgent(model=ScriptedModel([cell]), tools=(begun,), budget=Budget(cell_seconds=600))
    agent.run("?", trace={trace!r})
except Interrupted as interrupted:
    caught = interrupted
"""


def test_the_stop_button_of_a_notebook(tmp_path: Path) -> None:
    """In a real kernel, by a real interrupt request: the cell stops and the kernel lives."""
    ensure_event_loop = pytest.importorskip("jupyter_core.utils", reason="comes with jupyter_client").ensure_event_loop
    manager_of = pytest.importorskip("jupyter_client.manager", reason='pip install -e ".[kernel]"')
    pytest.importorskip("ipykernel", reason='pip install -e ".[kernel]"')
    folder = tmp_path / "k"
    folder.mkdir()
    manager = manager_of.KernelManager(transport="ipc", connection_file=str(folder / "c.json"), ip=str(folder / "s"))
    manager.start_kernel(extra_arguments=["--HistoryManager.enabled=False"])
    client = manager.blocking_client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=300)

        def heard(request: str, until: str = "") -> str:
            """What a request prints, to its end, or until it has printed something."""
            text = ""
            while True:
                message = client.get_iopub_msg(timeout=300)
                kind, content = message["header"]["msg_type"], message["content"]
                if message["parent_header"].get("msg_id") != request:
                    continue
                if kind == "stream":
                    text += content["text"]
                elif kind == "error":
                    text += "\n".join(content["traceback"])
                if (until and until in text) or (kind == "status" and content["execution_state"] == "idle"):
                    return text

        path = [p for p in sys.path if p]
        trace = str(tmp_path / "t.jsonl")
        run = client.execute(IN_THE_NOTEBOOK.format(path=path, trace=trace))
        assert heard(run, until="begun") == "begun\n"
        manager.interrupt_kernel()
        assert heard(run) == ""
        asked = client.execute(
            "turn = caught.outcome.turns[-1]\n"
            "print(caught.outcome.stop, turn.observations[0].failure.kind, turn.observations[0].text.split()[0])"
        )
        assert heard(asked) == "interrupted interrupted partial\n"
        assert manager.is_alive()
        end = read(trace).end
        assert end is not None
        assert end["stop"] == "interrupted"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()
        manager.context.destroy(linger=0)
        ensure_event_loop().close()  # jupyter_client made it, and nobody else would close it
