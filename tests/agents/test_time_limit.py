"""`Budget.seconds` bounds everything (semantics 26, 65).

Nothing here is timed: what hangs would hang for ever, and the run ends all the same.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loopback import Answering, Loopback

from rlm_loop import Budget, DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent, tool
from rlm_loop.accounting import Cancelled, Scope, call_scope
from rlm_loop.agents import Agent, Interrupted
from rlm_loop.messages import Prompt
from rlm_loop.models import Model, ModelError, OpenAICompatibleModel, Reply, RetryPolicy, ScriptedModel, ToolCall, Usage
from rlm_loop.tasks import Task
from rlm_loop.traces import Trace

SHORT = Budget(seconds=1.2)  # enough for a busy machine to ask the model before it


class Hung(Model):
    """A model that replies when it is told to, and not before."""

    name = "hung"

    def __init__(self) -> None:
        self.asked, self.go, self.replied = threading.Event(), threading.Event(), threading.Event()

    def complete(self, prompt: Any, *, max_tokens: int | None = None) -> Reply:
        self.asked.set()
        assert self.go.wait(60)
        self.replied.set()
        return Reply("42", usage=Usage(5, 1))


@pytest.fixture
def hung() -> Iterator[Hung]:
    model = Hung()
    yield model
    model.go.set()


@pytest.fixture(autouse=True, scope="module")
def _imported() -> None:
    """The first run imports what runs need, which may take as long as the limits here."""
    for agent in AGENTS:
        replace(agent, model=ScriptedModel(["x"] * 9)).run("q")
    server = Server("overloaded")
    with pytest.raises(ModelError):
        OpenAICompatibleModel("m", f"{server.address}/v1", retry=RetryPolicy(attempts=1)).complete(Prompt.ask("q"))
    server.server_close()


AGENTS = [ToolLoopAgent(), LeanAgent(), ReActAgent(), ReActAgent(form="calls"), DirectAgent()]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_a_model_that_does_not_reply_ends_the_run_at_its_limit(agent: Agent, hung: Hung, tmp_path: Path) -> None:
    with Trace(tmp_path / "run.jsonl") as trace:
        outcome = replace(agent, model=hung, budget=SHORT).run("q", trace=trace)
        _check_late(hung, tmp_path / "run.jsonl")
    assert (outcome.stop, outcome.answer, outcome.steps) == ("seconds", None, 0)
    assert outcome.over_budget
    assert outcome.usage.calls == 1  # what it costs is not known, and that is what is said
    assert outcome.usage.input_tokens is None


def _check_late(hung: Hung, trace: Path) -> None:
    """The reply comes when the run has ended, and is on record."""
    assert hung.asked.is_set()
    assert not hung.replied.is_set()
    hung.go.set()
    for _ in range(6000):
        if "late_reply" in trace.read_text("utf-8"):
            return
        threading.Event().wait(0.01)
    raise AssertionError("the late reply is not in the trace")


class Server(Loopback):
    def __init__(self, how: str) -> None:
        super().__init__(Handler)
        self.how, self.asked, self.go, self.hung_up = how, 0, threading.Event(), threading.Event()


class Handler(Answering):
    server: Server

    def do_POST(self) -> None:
        self.body()
        self.server.asked += 1
        if self.server.how == "retry":
            self.answer(429, "", {"Retry-After": "30"})
            return
        if self.server.how == "overloaded":
            self.answer(503, "")
            return
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        try:
            while not self.server.go.wait(0.01):
                if self.server.how == "drips":
                    self.wfile.write(b" ")
                elif not self.connection.recv(1):
                    raise ConnectionError
        except OSError:
            self.server.hung_up.set()


@pytest.mark.parametrize("how", ["hangs", "drips", "retry", "overloaded"])
def test_a_server_cannot_outlast_the_limit(how: str) -> None:
    server = Server(how)
    try:
        model = OpenAICompatibleModel("m", f"{server.address}/v1", retry=RetryPolicy(first=0.05, attempts=1000))
        outcome = LeanAgent(model=model, budget=SHORT).run("q")
        assert (outcome.stop, outcome.answer) == ("seconds", None)
        asked = server.asked
        if how in ("hangs", "drips"):
            assert server.hung_up.wait(60)  # and is not left to write for nobody
        elif how == "retry":
            assert asked == 1
    finally:
        server.go.set()
        server.server_close()


def test_nothing_is_asked_for_a_run_that_has_ended() -> None:
    """A retry that was waiting when the run ended would be paid for by nobody."""
    scope, attempts = Scope(), []

    def attempt() -> None:
        attempts.append(1)
        scope.end("the run has ended")
        raise ModelError("overloaded", "m", retryable=True)

    token = call_scope.set(scope)
    try:
        with pytest.raises(Cancelled):
            RetryPolicy(first=0).call(attempt)
    finally:
        call_scope.reset(token)
    assert len(attempts) == 1


def calls(name: str, count: int = 1) -> Reply:
    return Reply(tool_calls=tuple(ToolCall(f"c{n}", name, f'{{"n": {n}}}') for n in range(count)))


CELLS = {
    "a cell": "while True: pass",
    "a cell that swallows": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "a cell in C": "sum(range(10**13))",
    "tools in a cell": "while True:\n    try: quick(1)\n    except Exception: pass",
    "a tool in a cell": "hang(1)",
    "many in threads": "import concurrent.futures as c\nwith c.ThreadPoolExecutor() as p: list(p.map(hang, range(20)))",
}


@pytest.fixture
def tools() -> Iterator[list[Any]]:
    go = threading.Event()

    @tool
    def hang(n: int) -> int:
        """Hang."""
        go.wait(60)
        return n

    @tool
    def quick(n: int) -> int:
        """Return at once."""
        return n

    yield [hang, quick]
    go.set()


@pytest.mark.parametrize("cell", CELLS)
def test_cells_and_the_tools_that_they_call_end_at_the_limit(cell: str, tools: list[Any]) -> None:
    model = ScriptedModel([f"```python\n{CELLS[cell]}\n```"])
    outcome = ToolLoopAgent(model=model, tools=tools, budget=Budget(seconds=1)).run("q")
    assert outcome.stop == "seconds"
    assert outcome.steps == 1


@pytest.mark.parametrize("tool_timeout", [60.0, None])
def test_tools_and_those_behind_them_in_a_reply_end_at_the_limit(tools: list[Any], tool_timeout: float | None) -> None:
    model = ScriptedModel([calls("hang", 20)])
    outcome = LeanAgent(model=model, tools=tools, budget=replace(SHORT, tool_seconds=tool_timeout)).run("q")
    assert outcome.stop == "seconds"
    assert [o.failure.kind for o in outcome.turns[0].observations if o.failure] == ["budget"] * 20


def test_taking_the_artifact_ends_when_the_time_is_up() -> None:
    """It had a cell's whole time for itself, after the run's."""
    cell = (
        "```python\nclass Endless:\n    def __repr__(self):\n        __import__('time').sleep(3600)\nx = Endless()\n```"
    )
    model = ScriptedModel([cell, "```python\nimport time; time.sleep(3600)\n```"])
    agent = ToolLoopAgent(model=model, budget=replace(SHORT, cell_seconds=3600))
    outcome = agent.attempt(Task("t", "q", lambda attempt: False, collect="x"))
    assert (outcome.stop, outcome.artifact) == ("seconds", None)


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread() or sys.platform == "win32", reason="needs signals"
)
def test_ctrl_c_does_not_wait_for_a_model(hung: Hung) -> None:
    threading.Thread(target=lambda: hung.asked.wait(60) and os.kill(os.getpid(), signal.SIGINT), daemon=True).start()
    with pytest.raises(Interrupted) as caught:
        LeanAgent(model=hung).run("q")
    assert caught.value.outcome.stop == "interrupted"
    assert not hung.replied.is_set()


def test_the_stop_button_does_not_wait_for_a_model(hung: Hung) -> None:
    run = LeanAgent(model=hung).start("q")
    assert hung.asked.wait(60)
    run.stop()
    assert run.result(60).stop == "interrupted"
    assert not hung.replied.is_set()
