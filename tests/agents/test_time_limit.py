"""`Budget.seconds` bounds everything (semantics 26, 65).

Nothing here is timed: what hangs would hang for ever, and the run ends all the same.
"""

from __future__ import annotations

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
from rlm_loop.models import ModelError, OpenAICompatibleModel, RetryPolicy, ScriptedModel
from rlm_loop.tasks import Task
from rlm_loop.traces import Trace
from tests.agents.replies import Held, calls, code, main_only
from tests.repl.processes import press, until

SHORT = Budget(seconds=1.2)  # enough for a busy machine to ask the model before it
AGENTS = [ToolLoopAgent(), LeanAgent(), ReActAgent(), ReActAgent(form="calls"), DirectAgent()]


@pytest.fixture
def held() -> Iterator[Held]:
    model = Held()
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


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_a_model_that_does_not_reply_ends_the_run_at_its_limit(agent: Agent, held: Held, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Trace(path) as trace:
        outcome = replace(agent, model=held, budget=SHORT).run("q", trace=trace)
        assert (held.asked.is_set(), held.replied.is_set()) == (True, False)
        held.go.set()  # the reply comes when the run has ended, and is on record
        assert until(lambda: "late_reply" in path.read_text("utf-8"))
    assert (outcome.stop, outcome.answer, outcome.steps, outcome.over_budget) == ("seconds", None, 0, True)
    assert outcome.usage.calls == 1  # what it costs is not known, and that is what is said
    assert outcome.usage.input_tokens is None


class Server(Loopback):
    def __init__(self, how: str) -> None:
        super().__init__(Handler)
        self.how, self.asked, self.go, self.hung_up = how, 0, threading.Event(), threading.Event()


class Handler(Answering):
    server: Server

    def do_POST(self) -> None:
        self.body()
        self.server.asked += 1
        if self.server.how in REFUSES:
            self.answer(*REFUSES[self.server.how])
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


REFUSES = {"retry": (429, "", {"Retry-After": "30"}), "overloaded": (503, "")}


@pytest.mark.parametrize("how", ["hangs", "drips", "retry", "overloaded"])
def test_a_server_cannot_outlast_the_limit(how: str) -> None:
    server = Server(how)
    try:
        model = OpenAICompatibleModel("m", f"{server.address}/v1", retry=RetryPolicy(first=0.05, attempts=1000))
        outcome = LeanAgent(model=model, budget=SHORT).run("q")
        assert (outcome.stop, outcome.answer) == ("seconds", None)
        assert how != "retry" or server.asked == 1
        assert how in REFUSES or server.hung_up.wait(60)  # and is not left to write for nobody
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
    outcome = ToolLoopAgent(ScriptedModel([code(CELLS[cell])]), Budget(seconds=1), tools=tools).run("q")
    assert (outcome.stop, outcome.steps) == ("seconds", 1)


@pytest.mark.parametrize("tool_timeout", [60.0, None])
def test_tools_and_those_behind_them_in_a_reply_end_at_the_limit(tools: list[Any], tool_timeout: float | None) -> None:
    model = ScriptedModel([calls(*[("hang", {"n": n}) for n in range(20)])])
    outcome = LeanAgent(model=model, tools=tools, budget=replace(SHORT, tool_seconds=tool_timeout)).run("q")
    assert outcome.stop == "seconds"
    assert [o.failure.kind for o in outcome.turns[0].observations if o.failure] == ["budget"] * 20


def test_taking_the_artifact_ends_when_the_time_is_up() -> None:
    """It had a cell's whole time for itself, after the run's."""
    cell = "class Endless:\n    def __repr__(self):\n        __import__('time').sleep(3600)\nx = Endless()"
    model = ScriptedModel([code(cell), code("import time; time.sleep(3600)")])
    agent = ToolLoopAgent(model=model, budget=replace(SHORT, cell_seconds=3600))
    outcome = agent.attempt(Task("t", "q", lambda attempt: False, collect="x"))
    assert (outcome.stop, outcome.artifact) == ("seconds", None)


@main_only
def test_ctrl_c_does_not_wait_for_a_model(held: Held) -> None:
    threading.Thread(target=lambda: held.asked.wait(60) and press(), daemon=True).start()
    with pytest.raises(Interrupted) as caught:
        LeanAgent(model=held).run("q")
    assert (caught.value.outcome.stop, held.replied.is_set()) == ("interrupted", False)
