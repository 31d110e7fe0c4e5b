"""`Budget.seconds` bounds everything (semantics 26, 65).

Nothing here is timed: what hangs would hang for ever, and the run ends all the same.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from upstream import Answer, until_gone, upstream

from rlm_loop import Budget, DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.accounting import Cancelled, Scope, call_scope
from rlm_loop.agents import Agent
from rlm_loop.messages import Prompt
from rlm_loop.models import ModelError, OpenAICompatibleModel, RetryPolicy, ScriptedModel
from rlm_loop.tasks import Task
from rlm_loop.traces import Trace
from tests.agents.replies import Held, calls, code, named
from tests.repl.processes import until

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
    with upstream(TROUBLES["overloaded"]) as server, pytest.raises(ModelError):
        OpenAICompatibleModel("m", server.url, retry=RetryPolicy(attempts=1)).complete(Prompt.ask("q"))


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


def drips(handler: Any) -> None:
    while True:
        handler.wfile.write(b"1\r\n \r\n")
        time.sleep(0.01)


TROUBLES = {
    "hangs": Answer([until_gone]),
    "drips": Answer([drips]),
    "retry": Answer.of("", 429, Retry_After="30"),
    "overloaded": Answer.of("", 503),
}


@pytest.mark.parametrize("how", TROUBLES)
def test_a_server_cannot_outlast_the_limit(how: str) -> None:
    with upstream(TROUBLES[how]) as server:
        model = OpenAICompatibleModel("m", server.url, retry=RetryPolicy(first=0.05, attempts=1000))
        outcome = LeanAgent(model=model, budget=SHORT).run("q")
        assert (outcome.stop, outcome.answer) == ("seconds", None)
        assert how != "retry" or len(server.got) == 1
        assert how not in ("hangs", "drips") or server.gone.wait(60)  # and is not left to write for nobody


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
    yield [named("hang", lambda n: go.wait(60)), named("quick", lambda n: n)]
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
