"""Agents end to end on scripted models: limits, errors, traces, recursion, hooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import Budget, DirectAgent, LeanAgent, ReActAgent, ToolLoopAgent
from rlm_loop.accounting import UnknownPrice
from rlm_loop.agents import Agent, Rules
from rlm_loop.dialects import Nudge
from rlm_loop.models import ModelError, Reply, ScriptedModel, ToolCall
from rlm_loop.traces import read


def code(text: str) -> str:
    return f"```python\n{text}\n```"


def test_the_shortest_run() -> None:
    outcome = ToolLoopAgent(model=ScriptedModel([code("final_answer = 6 * 7")])).run("What is 6 times 7?")
    assert outcome.answer == 42
    assert outcome.stop == "answered"
    assert outcome.answer_form == "object"
    assert outcome.usage.calls == 1
    assert outcome.ledger.frame()["tokens"].sum() == outcome.usage.input_tokens


def test_text_without_code_is_the_answer_and_its_prefix_is_removed() -> None:
    outcome = ToolLoopAgent(model=ScriptedModel(["Final Answer: Paris"])).run("Capital?")
    assert (outcome.answer, outcome.answer_form) == ("Paris", "text")


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
    assert (outcome.stop, outcome.usage.calls) == (stop, calls)
    assert outcome.reason
    if budget.output_tokens is not None:
        assert (outcome.usage.output_tokens or 0) <= budget.output_tokens
    assert not outcome.answered


def test_a_stale_answer_of_an_earlier_run_never_counts() -> None:
    from rlm_loop.repl import PythonREPL

    with PythonREPL() as repl:
        first = ToolLoopAgent(model=ScriptedModel([code("x = 1\nfinal_answer = x")]), repl=repl).run("?")
        again = ScriptedModel([code("print(x)"), code("final_answer = x + 1")])
        second = ToolLoopAgent(model=again, repl=repl).run("?")
    assert (first.answer, second.answer, second.steps) == (1, 2, 2)


def test_a_failing_model_leaves_everything_on_the_exception(tmp_path: Path) -> None:
    model = ScriptedModel([code("final_answer = 5\n1/0"), ModelError("the server is gone; start it again")])
    with pytest.raises(ModelError, match="start it again") as caught:
        ToolLoopAgent(model=model).run("?", trace=tmp_path / "t.jsonl")
    error = caught.value
    assert error.partial_answer == 5
    assert error.usage is not None
    assert error.trace == str(tmp_path / "t.jsonl")
    assert error.outcome.stop == "failed"  # type: ignore[attr-defined]
    end = read(tmp_path / "t.jsonl").end
    assert end is not None
    assert end["stop"] == "failed"


def test_a_cost_limit_needs_a_price() -> None:
    model = ScriptedModel(["x"])
    with pytest.raises(UnknownPrice):
        DirectAgent(model=model, budget=Budget(cost=1.0)).run("?")
    assert model.prompts == []
    priced = ScriptedModel(["a b c d" * 10], price=(0.001, 0.01))
    outcome = DirectAgent(model=priced, budget=Budget(cost=0.05)).run("?")
    assert (outcome.usage.output_tokens or 0) * 0.01 <= 0.05


@pytest.mark.parametrize("question", ["", "  \n"])
def test_an_empty_question_is_refused(question: str) -> None:
    with pytest.raises(ValueError, match="question is empty"):
        ToolLoopAgent(model=ScriptedModel(["x"])).run(question)


def test_hooks_are_told_and_one_that_raises_is_harmless(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []

    class Watch:
        def on_run_start(self, **_: Any) -> None:
            seen.append("start")

        def on_step_end(self, turn: Any) -> None:
            seen.append(f"step {turn.index}")
            raise RuntimeError("boom")

        def on_run_end(self, outcome: Any) -> None:
            seen.append(str(outcome.stop))

    model = ScriptedModel([code("1"), code("final_answer = 1")])
    assert ToolLoopAgent(model=model, hooks=(Watch(),)).run("?").answer == 1
    assert seen == ["start", "step 1", "step 2", "answered"]
    assert "a hook raised in on_step_end" in caplog.text


def len_of(text: str) -> int:
    """Say how long a text is."""
    return len(text)


class Heard:
    """Writes down every event of a run."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("on_") or name == "on_text":
            raise AttributeError(name)

        def hear(**values: Any) -> None:
            more = [values[key] for key in ("node", "tool", "turn_index") if key in values]
            ended = [values["result"].ok] if "result" in values else [values["ok"]] if "ok" in values else []
            self.events.append(" ".join(str(part) for part in (name.removeprefix("on_"), *more, *ended)))

        return hear


def test_hooks_hear_of_tools_and_of_whose_steps_they_are() -> None:
    def double(n: int) -> int:
        """Double a number."""
        return 2 * n

    heard = Heard()
    replies = [code("x = double(4)\nfinal_answer = llm_query('?', context='c')"), code("final_answer = double(1)")]
    agent = ToolLoopAgent(model=ScriptedModel(replies), tools=[double], max_depth=2, hooks=(heard,))
    assert agent.run("?", context="c").answer == "2"
    assert heard.events == [
        "run_start",
        "step_start 0 1",
        "tool_start 0 double",
        "tool_end 0 double True",
        "tool_start 0 llm_query",
        "subcall_start 0.1",
        "step_start 0.1 1",
        "tool_start 0.1 double",
        "tool_end 0.1 double True",
        "step_end 0.1",
        "subcall_end 0.1 True",
        "tool_end 0 llm_query True",
        "step_end 0",
        "run_end",
    ]


def test_a_hook_hears_of_calls_that_fail() -> None:
    heard = Heard()
    model = ScriptedModel([Reply("", tool_calls=(ToolCall("1", "nothing", "{}"),)), "done"])
    LeanAgent(model=model, hooks=(heard,)).run("?")
    assert "tool_end 0 nothing False" in heard.events
    assert not any(event.startswith("tool_start") for event in heard.events)


def test_the_context_is_told_in_a_line_and_never_written_down(tmp_path: Path) -> None:
    secret = "needle " * 30_000
    model = ScriptedModel([code("final_answer = context.count('needle')")])
    outcome = ToolLoopAgent(model=model).run("How many needles?", context=secret, trace=tmp_path / "t.jsonl")
    assert outcome.answer == 30_000
    told = model.prompts[0].messages[-1].text
    assert "210,000 characters" in told
    assert len(told) < 400
    assert (tmp_path / "t.jsonl").stat().st_size < 20_000
    assert read(tmp_path / "t.jsonl").start["context"]["bytes"] == 210_000


def test_direct_sees_the_context_clipped() -> None:
    model = ScriptedModel(["two"])
    outcome = DirectAgent(model=model).run("How many?", context="a" * 50_000)
    assert (outcome.answer, outcome.steps) == ("two", 1)
    assert 10_000 < len(model.prompts[0].messages[-1].text) < 14_000


@pytest.mark.parametrize("agent", [ToolLoopAgent, LeanAgent, ReActAgent, DirectAgent])
def test_settings_are_json_and_tell_strategies_apart(agent: type[Agent]) -> None:
    model = ScriptedModel([])
    plain = agent(model=model).settings()
    json.dumps(plain)
    assert plain != agent(model=model, injectors=(Nudge(),)).settings()
    assert plain != agent(model=model, system="Other text.").settings()


@pytest.mark.parametrize(
    ("agent", "own"),
    [
        (LeanAgent(model=ScriptedModel([])), 0),
        (ReActAgent(model=ScriptedModel([]), form="calls"), 2),
    ],
)
def test_lean_adds_no_injector_and_react_over_calls_adds_two(agent: Agent, own: int) -> None:
    injectors = getattr(agent.dialect, "injectors", ())
    assert len(injectors) == own


def test_an_agent_without_an_allow_list_is_the_one_it_was_and_the_callers_lists_stay_theirs() -> None:
    assert LeanAgent().settings()["rules"]["allow"] is None
    assert LeanAgent(rules=Rules(allow=("look",))).settings()["rules"]["allow"] == ["look"]
    tools, hooks, injectors, allow = [len_of], [object()], list[Any](), ["len_of"]
    model = ScriptedModel(["42"], name="local:scripted")
    LeanAgent(model=model, tools=tools, hooks=hooks, injectors=injectors, rules=Rules(allow=allow)).run("?")
    assert (tools, len(hooks), injectors, allow) == ([len_of], 1, [], ["len_of"])
    assert "len_of(" in model.prompts[0].messages[0].text


def test_a_lean_loop_can_do_without_its_answer_tool() -> None:
    model = ScriptedModel([Reply("", (ToolCall("1", "final_answer", '{"answer": 1}'),)), "42"])
    agent = LeanAgent(model=model, answer_tool=False, presentation="native")
    outcome = agent.run("What is 6 times 7?")
    assert (outcome.answer, outcome.stop, outcome.steps) == ("42", "answered", 2)
    assert "final_answer" not in str(model.prompts[0].tools)
    assert outcome.turns[0].observations[0].failure is not None  # it called what is not there
    listed = LeanAgent(model=(said := ScriptedModel(["42"], name="local:scripted")), answer_tool=False)
    assert listed.run("?").answer == "42"
    assert "final_answer" not in said.prompts[0].messages[0].text
    assert listed.settings()["answer_tool"] is False
    with pytest.raises(ValueError, match="answer_tool"):
        LeanAgent(model=model, answer_tool=False, presentation="constrained")


def test_react_over_calls_goes_on_after_thinking_aloud() -> None:
    call = '{"name": "final_answer", "arguments": {"answer": 42}}'
    model = ScriptedModel(["First I think. It is 42.", call], name="local:scripted")
    outcome = ReActAgent(model=model, form="calls").run("What is 6 times 7?")
    assert (outcome.answer, outcome.stop, outcome.steps) == (42, "answered", 2)
    assert model.prompts[1].messages[-1].text.startswith("No tool was called.")
    assert LeanAgent(model=ScriptedModel(["It is 42."], name="local:scripted")).run("?").answer == "It is 42."


def test_a_finish_without_an_answer_asks_for_it() -> None:
    replies = [
        "Action: python\nAction Input: print(6 * 7)",
        "Action: finish",
        'Action: finish\nAction Input: {"answer": 42}',
    ]
    outcome = ReActAgent(model=ScriptedModel(replies, name="local:scripted")).run("?")
    assert outcome.answer == 42
    assert "finish needs the answer" in outcome.turns[1].observations[0].text
