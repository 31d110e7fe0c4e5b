"""Agents end to end on scripted models: limits, errors, traces, hooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlm_loop import Budget, DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.accounting import UnknownPrice
from rlm_loop.agents import Rules
from rlm_loop.models import ModelError, Reply, ScriptedModel
from rlm_loop.repl import PythonREPL
from rlm_loop.traces import Trace, read
from tests.agents.replies import LOCAL, call, calls, code, written


@pytest.mark.parametrize(
    ("reply", "answer", "form"),
    [(code("final_answer = 6 * 7"), 42, "object"), ("Final Answer: Paris", "Paris", "text")],
)
def test_the_shortest_runs(reply: str, answer: Any, form: str) -> None:
    outcome = ToolLoopAgent(model=ScriptedModel([reply])).run("?")
    assert (outcome.answer, outcome.answer_form, outcome.stop, outcome.usage.calls) == (answer, form, "answered", 1)


@pytest.mark.parametrize(
    ("budget", "stop", "calls"),
    [
        (Budget(steps=2), "steps", 2),
        (Budget(steps=0), "steps", 0),
        (Budget(calls=2), "calls", 2),
        (Budget(calls=0), "calls", 0),
        (Budget(tokens=0), "tokens", 0),
        (Budget(seconds=0), "seconds", 0),
        (Budget(output_tokens=12), "tokens", 2),
    ],
)
def test_every_limit_ends_the_run_and_is_named(budget: Budget, stop: str, calls: int) -> None:
    model = ScriptedModel([code(f"print({n})") for n in range(9)])
    outcome = ToolLoopAgent(model=model, budget=budget).run("Count.")
    assert (outcome.stop, outcome.usage.calls, outcome.answered) == (stop, calls, False)
    assert outcome.reason
    if budget.output_tokens is not None:
        assert (outcome.usage.output_tokens or 0) <= budget.output_tokens


def test_a_cost_limit_needs_a_price() -> None:
    model = ScriptedModel(["x"])
    with pytest.raises(UnknownPrice):
        DirectAgent(model=model, budget=Budget(cost=1.0)).run("?")
    assert model.prompts == []


def test_a_stale_answer_of_an_earlier_run_never_counts() -> None:
    with PythonREPL() as repl:
        first = ToolLoopAgent(model=ScriptedModel([code("x = 1\nfinal_answer = x")]), repl=repl).run("?")
        again = ScriptedModel([code("print(x)"), code("final_answer = x + 1")])
        second = ToolLoopAgent(model=again, repl=repl).run("?")
    assert (first.answer, second.answer, second.steps) == (1, 2, 2)


def test_a_failing_model_leaves_everything_on_the_exception(tmp_path: Path) -> None:
    model, path = ScriptedModel([code("final_answer = 5\n1/0"), ModelError("start it again")]), tmp_path / "t.jsonl"
    with pytest.raises(ModelError, match="start it again") as caught:
        ToolLoopAgent(model=model).run("?", trace=path)
    error: Any = caught.value
    assert (error.partial_answer, error.trace, error.outcome.stop) == (5, str(path), "failed")
    assert error.usage is not None
    assert read(path).end["stop"] == "failed"


class Heard:
    """Writes down every event of a run; raises after each step."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def on_step_end(self, node: str, steps_remaining: int) -> None:
        self.events.append(f"step_end {node} {steps_remaining}")
        raise RuntimeError("boom")

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("on_") or name == "on_text":
            raise AttributeError(name)

        def hear(**values: Any) -> None:
            more = [values[key] for key in ("node", "tool", "turn_index", "steps_remaining") if key in values]
            ended = [values["result"].ok] if "result" in values else [values["ok"]] if "ok" in values else []
            self.events.append(" ".join(str(part) for part in (name.removeprefix("on_"), *more, *ended)))

        return hear


def test_hooks_hear_of_steps_and_tools_and_one_that_raises_is_harmless(caplog: pytest.LogCaptureFixture) -> None:
    def double(n: int) -> int:
        """Double a number."""
        return 2 * n

    heard, trace = Heard(), Trace()
    replies = [code("x = double(4)\nfinal_answer = llm_query('?', context='c')"), code("final_answer = double(1)")]
    agent = ToolLoopAgent(ScriptedModel(replies), Budget(steps=3), tools=[double], max_depth=2, hooks=(heard,))
    assert agent.run("?", context="c", trace=trace).answer == "2"
    assert heard.events == [
        "run_start",
        "step_start 0 1 3",
        "tool_start 0 double",
        "tool_end 0 double True",
        "tool_start 0 llm_query",
        "subcall_start 0.1",
        "step_start 0.1 1 3",
        "tool_start 0.1 double",
        "tool_end 0.1 double True",
        "step_end 0.1 2",
        "subcall_end 0.1 True",
        "tool_end 0 llm_query True",
        "step_end 0 2",
        "run_end",
    ]
    assert "a hook raised in on_step_end" in caplog.text
    assert [e["steps_remaining"] for e in trace.events if e["event"] == "turn"] == [2, 2]


def test_a_hook_hears_of_calls_that_fail() -> None:
    heard = Heard()
    LeanAgent(model=ScriptedModel([call("nothing"), "done"]), hooks=(heard,)).run("?")
    assert [event for event in heard.events if event.startswith("tool")] == ["tool_end 0 nothing False"]


def test_the_context_is_told_in_a_line_and_never_written_down(tmp_path: Path) -> None:
    model, path = ScriptedModel([code("final_answer = context.count('needle')")]), tmp_path / "t.jsonl"
    outcome = ToolLoopAgent(model=model).run("How many needles?", context="needle " * 30_000, trace=path)
    assert outcome.answer == 30_000
    told = model.prompts[0].messages[-1].text
    assert ("210,000 characters" in told, len(told) < 400) == (True, True)
    assert path.stat().st_size < 20_000
    assert read(path).start["context"]["bytes"] == 210_000


def test_a_lean_loop_can_do_without_its_answer_tool() -> None:
    model = ScriptedModel([call("final_answer", answer=1), "42"])
    outcome = LeanAgent(model=model, answer_tool=False, presentation="native").run("What is 6 times 7?")
    assert (outcome.answer, outcome.stop, outcome.steps) == ("42", "answered", 2)
    assert "final_answer" not in str(model.prompts[0].tools)
    assert outcome.turns[0].observations[0].failure is not None  # it called what is not there
    listed = LeanAgent(model=(said := ScriptedModel(["42"], name=LOCAL)), answer_tool=False)
    assert listed.run("?").answer == "42"
    assert "final_answer" not in said.prompts[0].messages[0].text
    with pytest.raises(ValueError, match="answer_tool"):
        LeanAgent(model=model, answer_tool=False, presentation="constrained")


def test_react_over_calls_goes_on_after_thinking_aloud() -> None:
    model = ScriptedModel(["First I think. It is 42.", written("final_answer", answer=42)], name=LOCAL)
    outcome = ReActAgent(model=model, form="calls").run("What is 6 times 7?")
    assert (outcome.answer, outcome.stop, outcome.steps) == (42, "answered", 2)
    assert model.prompts[1].messages[-1].text.startswith("No tool was called.")


@pytest.mark.parametrize(
    "reply",
    [code("print(1)", "print(2)"), calls(("python", {"code": "print(1)"}), ("final_answer", {"answer": 5}))],
    ids=["cells", "calls"],
)
def test_one_action_a_reply_skips_the_others(reply: str | Reply) -> None:
    agent, last = (ToolLoopAgent, code("final_answer = 3")) if isinstance(reply, str) else (LeanAgent, "3")
    outcome = agent(model=ScriptedModel([reply, last]), rules=Rules(one_action=True)).run("?")
    first, second = outcome.turns[0].observations
    assert (first.text.strip(), first.ok) == ("1", True)
    assert (second.failure and second.failure.kind, outcome.steps) == ("skipped", 2)
