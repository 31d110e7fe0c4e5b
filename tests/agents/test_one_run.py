"""One `Run` for every question: how it is made, and how it ends."""

from __future__ import annotations

import inspect
import threading
from typing import Any

import pytest

from rlm_loop import LeanAgent, Task, ToolLoopAgent
from rlm_loop.accounting.call_tree import Caller
from rlm_loop.agents import Interrupted, Rules, SubCalls
from rlm_loop.agents.environment import Environment
from rlm_loop.messages import Prompt
from rlm_loop.models import Model, Reply, ScriptedModel, ToolCall
from rlm_loop.models.listening import tell
from rlm_loop.repl import ReplError, open_repl
from rlm_loop.replay import replay
from rlm_loop.traces import read


def code(*cells: str) -> str:
    return "\n".join(f"```python\n{cell}\n```" for cell in cells)


def test_an_environment_takes_six_arguments() -> None:
    assert list(inspect.signature(Environment).parameters) == [
        "repl",
        "tools",
        "workspace",
        "rules",
        "limits",
        "record",
    ]


def test_one_action_a_reply_skips_the_others() -> None:
    model = ScriptedModel([code("print(1)", "print(2)"), code("final_answer = 3")])
    outcome = ToolLoopAgent(model=model, rules=Rules(one_action=True)).run("?")
    first, second = outcome.turns[0].observations
    assert (first.text.strip(), first.ok) == ("1", True)
    assert second.failure is not None
    assert second.failure.kind == "skipped"
    assert outcome.answer == 3


def test_one_action_a_reply_holds_for_calls_too() -> None:
    calls = (ToolCall("1", "python", '{"code": "print(1)"}'), ToolCall("2", "final_answer", '{"answer": 5}'))
    model = ScriptedModel([Reply(tool_calls=calls), Reply(tool_calls=calls[1:])])
    outcome = LeanAgent(model=model, presentation="native", rules=Rules(one_action=True)).run("?")
    assert (outcome.answer, outcome.steps) == (5, 2)


def test_a_full_window_loses_its_oldest_turns_and_is_a_stop_where_the_last_one_fills_it(tmp_path: Any) -> None:
    """It was `RequestRejected`: a study counted the arm's own doing as a crash, and its patch was lost."""
    cells = [f"x = {n}\n# " + "many words " * (60 if n < 30 else 900) for n in range(40)]
    path = tmp_path / "run.jsonl"
    agent = ToolLoopAgent(model=ScriptedModel([code(cell) for cell in cells], window=1800), max_steps=40)
    outcome = agent.attempt(Task("t", "Count.", lambda attempt: False, collect="x"), trace=path)
    assert (outcome.stop, outcome.artifact) == ("window", 30)
    assert {e["policy"] for e in read(path).of("compaction")} == {"window"}
    assert replay(path).same


class Streaming(Model):
    """Says a part of its reply, and is interrupted."""

    name = "streaming"
    interruptible = True

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        tell("text", "The answer may be ")
        tell("text", "forty")
        raise KeyboardInterrupt


def test_text_that_a_user_saw_is_kept_where_the_reply_was_broken_off() -> None:
    class Shows:
        def on_text(self, text: str) -> None: ...

    with pytest.raises(Interrupted) as caught:
        ToolLoopAgent(model=Streaming()).run("?", hooks=[Shows()])
    assert caught.value.outcome.last_reply == "The answer may be forty"
    assert caught.value.outcome.answer is None


def test_a_fault_of_the_repl_while_the_artifact_is_collected_is_a_fault() -> None:
    """It was swallowed: the run had answered, with no artifact, and counted as the model's failure."""
    broken = open_repl("plain")

    def get(expression: str, *, timeout: float | None = None) -> Any:
        raise ReplError("the disk is full")

    broken.get = get  # type: ignore[method-assign]
    task = Task("t", "?", lambda attempt: False, collect="x")
    agent = ToolLoopAgent(model=ScriptedModel([code("x = 1\nfinal_answer = 1")]), repl=broken)
    with broken, pytest.raises(ReplError, match="disk is full") as caught:
        agent.attempt(task)
    assert caught.value.outcome.answer == 1  # type: ignore[attr-defined]
    assert caught.value.outcome.stop == "failed"  # type: ignore[attr-defined]


def test_an_artifact_that_cannot_be_evaluated_is_none() -> None:
    task = Task("t", "?", lambda attempt: False, collect="x")
    assert ToolLoopAgent(model=ScriptedModel([code("final_answer = 1")])).attempt(task).artifact is None


def test_the_end_of_a_sub_agent_states_its_own_usage(tmp_path: Any) -> None:
    """It stated that of the whole run."""
    replies = [code("final_answer = llm_query('Work.')"), code("final_answer = 'done'")]
    path = tmp_path / "run.jsonl"
    outcome = ToolLoopAgent(model=ScriptedModel(replies), subcalls=SubCalls(depth=2)).run("?", trace=path, context="c")
    ends = {e["node"]: e for e in read(path).of("run_end")}
    below = [call for call in outcome.ledger.calls if call.node == "0.1"]
    assert len(below) == 1
    assert ends["0.1"]["usage"]["input_tokens"] == below[0].usage.input_tokens
    assert ends["0"]["usage"]["input_tokens"] == outcome.usage.input_tokens > below[0].usage.input_tokens
    assert ends["0.1"]["seconds"] <= ends["0"]["seconds"]


class Slow(Model):
    """Answers the root at once, and no sub-call until it is told to."""

    name = "slow"

    def __init__(self) -> None:
        self.waits = threading.Event()

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        if "Work." in prompt.messages[-1].text:
            self.waits.wait(60)
            return Reply("late")
        return Reply(code("final_answer = llm_query('Work.')"))


def test_a_sub_call_that_does_not_end_is_waited_for_once_and_not_beyond_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run with `seconds=1` came back after 4.1 s: it was patient at the end of the run, and twice more."""
    waited: list[float] = []
    kept = Caller._ended

    def ended(self: Caller, children: list[Caller], seconds: float) -> bool:
        waited.append(seconds if children else 0.0)
        return kept(self, children, seconds)

    monkeypatch.setattr(Caller, "_ended", ended)
    model = Slow()
    outcome = ToolLoopAgent(model=model, seconds=1.0).run("?")
    model.waits.set()
    assert (outcome.stop, outcome.usage.input_tokens) == ("seconds", None)
    assert sum(waited) <= 0.01
