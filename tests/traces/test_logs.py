"""Log lines: the same fields in each, for people in the message and for programs on the record, without a secret."""

from __future__ import annotations

import logging

import pytest

from rlm_loop import Budget, LeanAgent, ToolLoopAgent
from rlm_loop.models import ModelError, Reply, ScriptedModel, ToolCall
from rlm_loop.outcome import Outcome
from rlm_loop.traces import Trace

KEY = "sk-proj-abc_def-GHIjkl0123456789"
FIELDS = ["run", "task", "node", "turn", "call_id", "tool", "seconds", "tokens", "steps_remaining", "error_kind"]


def stock(item: str) -> int:
    """How many there are."""
    if item == "none":
        raise LookupError(f"no such item, api_key={KEY}")
    return len(item)


def call(number: str, item: str) -> Reply:
    return Reply("", (ToolCall(number, "stock", f'{{"item": "{item}"}}'),), "tool_calls")


def work(caplog: pytest.LogCaptureFixture) -> Outcome:
    final = Reply("", (ToolCall("c3", "final_answer", '{"answer": 5}'),), "tool_calls")
    model = ScriptedModel([call("c1", "apple"), call("c2", "none"), final], name="m")
    with caplog.at_level(logging.DEBUG, logger="rlm_loop"):
        return LeanAgent(model=model, tools=(stock,), budget=Budget(steps=9)).run("How many?")


def told(caplog: pytest.LogCaptureFixture, what: str) -> list[logging.LogRecord]:
    return [r for r in caplog.records if r.getMessage().startswith(what + " ")]


def test_every_line_has_every_field_says_those_that_are_known_and_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    outcome = work(caplog)
    assert caplog.records
    assert KEY not in caplog.text
    own = [handler for handler in logging.getLogger("rlm_loop").handlers if handler is not caplog.handler]
    assert all(isinstance(handler, logging.NullHandler) for handler in own)
    for record in caplog.records:
        known = {name: getattr(record, name) for name in FIELDS}
        assert (known["run"], known["task"], known["node"]) == (outcome.run, "question", "0")
        line = record.getMessage()
        assert [name for name in FIELDS if f" {name}=" in line] == [name for name in FIELDS if known[name] is not None]
        assert "\n" not in line
        assert KEY not in str(vars(record))


def test_a_turn_and_a_tool_say_what_they_took_and_what_is_left(caplog: pytest.LogCaptureFixture) -> None:
    outcome = work(caplog)
    turns, tools = told(caplog, "turn"), told(caplog, "tool")
    assert [(r.turn, r.steps_remaining, r.error_kind) for r in turns] == [(1, 8, None), (2, 7, "runtime"), (3, 6, None)]
    assert [r.tokens for r in turns] == [turn.reply.usage.total_tokens for turn in outcome.turns if turn.reply.usage]
    called = [(1, "stock", "c1", None), (2, "stock", "c2", "runtime"), (3, "final_answer", "c3", None)]
    assert [(r.turn, r.tool, r.call_id, r.error_kind) for r in tools] == called
    assert [r.call_id for r in told(caplog, "reply")] == [1, 2, 3]
    (end,) = told(caplog, "run_end")
    assert (end.tokens, "stop=answered" in end.getMessage()) == (outcome.usage.total_tokens, True)


def test_a_failure_of_a_model_is_told_with_its_kind(caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedModel([ModelError(f"the key {KEY} is wrong")], name="m")
    with caplog.at_level(logging.INFO, logger="rlm_loop"), pytest.raises(ModelError):
        ToolLoopAgent(model=model).run("How many?")
    (error,), (end,) = told(caplog, "model_error"), told(caplog, "run_end")
    assert (error.error_kind, error.call_id, error.turn, end.error_kind) == ("ModelError", 1, 1, "ModelError")
    assert KEY not in caplog.text


def test_a_name_cannot_forge_a_line_or_a_field(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="rlm_loop"):
        Trace(ids=lambda: "r2").start(task='x"\nturn run=r1 100%s')
    assert caplog.records[0].getMessage().startswith('run_start run=r2 task="x\\"\\nturn run=r1 100%s" ')


def test_runs_of_one_trace_are_told_apart(caplog: pytest.LogCaptureFixture) -> None:
    agent, trace = ToolLoopAgent(model=ScriptedModel(["It is 4."] * 2, name="m")), Trace()
    with caplog.at_level(logging.INFO, logger="rlm_loop"):
        first, second = (agent.run("2 + 2?", trace=trace).run for _ in range(2))
    assert [r.run for r in told(caplog, "run_end")] == [first, second]
    assert first != second
