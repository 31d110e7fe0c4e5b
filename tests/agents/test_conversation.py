"""Questions that follow each other: what lives on, what each question has for itself, and what a fault leaves."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import Budget, Compaction, DirectAgent, LeanAgent, ReActAgent, ScriptedModel, ToolLoopAgent
from rlm_loop.agents import Agent, outcome_of
from rlm_loop.messages import Prompt
from rlm_loop.models import ModelError
from rlm_loop.outcome import Outcome
from rlm_loop.replay import ReplayError, fork, replay
from rlm_loop.report import LiveRun, start_live
from rlm_loop.traces import Trace, read_all
from tests.agents.replies import Held, broken_off, cell, code, final


def said(prompt: Prompt) -> list[tuple[str, str]]:
    return [(m.role, m.text) for m in prompt.messages]


AGENTS = [ToolLoopAgent(), LeanAgent(), ReActAgent(), DirectAgent()]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_every_strategy_goes_on(agent: Agent, tmp_path: Path) -> None:
    replies, path = [cell(agent, "x = sum(context); print(x)"), final(agent, 6)], tmp_path / "t.jsonl"
    replies += [cell(agent, "print(x + 1)"), final(agent, 7)]
    direct = isinstance(agent, DirectAgent)
    model = ScriptedModel(["6", "7"] if direct else replies)
    with replace(agent, model=model).session(context=[1, 2, 3], trace=path) as s:
        outcomes = [s.ask("What is the sum?"), s.ask("And one more?")]
    assert ([o.answer for o in outcomes], s.outcomes) == (["6", "7"] if direct else [6, 7], outcomes)
    assert direct or outcomes[1].turns[0].observations[0].text.strip() == "7"
    for before, now in pairwise(model.prompts):  # the prefix grows through the session
        assert now.messages[: len(before.messages)] == before.messages
        assert ("user", "user") not in pairwise(m.role for m in now.messages)
    assert [t.index for o in outcomes for t in o.turns] == list(range(1, len(model.prompts) + 1))
    for outcome in outcomes:
        billed = sum(row.tokens for row in outcome.ledger.rows)
        assert (billed, outcome.steps) == (outcome.usage.input_tokens, outcome.usage.calls)
    assert s.usage == outcomes[0].usage + outcomes[1].usage
    records = list(read_all(path))
    assert [r.start["session"]["question"] for r in records] == [1, 2]
    assert records[1].start["session"]["after"] == records[0].id == outcomes[0].run
    for record, outcome in zip(records, outcomes, strict=True):
        assert (again := replay(record)).same, str(again)
        assert outcome_of(record).ledger.rows == outcome.ledger.rows
    with pytest.raises(ReplayError, match="question 2 of a session"):
        fork(records[1], at=0)


def test_the_next_question_is_put_after_what_was_said() -> None:
    model = ScriptedModel([code("x = 5\nfinal_answer = x"), "It is 6", "You are welcome"])
    with ToolLoopAgent(model=model, max_depth=0).session(context="abc") as s:
        for question in ("Five?", "One more?", "Thanks"):
            s.ask(question)
    first, *rest = said(model.prompts[2])[1:]
    assert first[1].startswith("Five?\nThe REPL already has the variable context")
    assert rest == [
        ("assistant", code("x = 5\nfinal_answer = x")),
        ("user", "(no output)\n\nOne more?"),
        ("assistant", "It is 6"),
        ("user", "Thanks"),
    ]
    again = s.outcomes[1].ledger.frame()
    assert set(again[again["resent"] > 0]["cause"]) == {"system", "task", "template"}  # the answer was not sent before


def test_each_question_has_the_budget_anew() -> None:
    model = ScriptedModel([code("a = 1"), code("b = 2"), code("c = 3"), code("final_answer = a + b + c")])
    with ToolLoopAgent(model=model, budget=Budget(steps=2)).session() as s:
        first, second = s.ask("Make them"), s.ask("Go on")
    assert (first.stop, first.steps, second.stop, second.answer) == ("steps", 2, "answered", 6)


def test_a_context_is_told_once_and_a_new_one_again() -> None:
    model = ScriptedModel([code("final_answer = context")] * 3)
    with ToolLoopAgent(model=model).session(context="old") as s:
        answers = [s.ask("Which?").answer, s.ask("And now?").answer, s.ask("And now?", context="new").answer]
    assert answers == ["old", "old", "new"]
    assert [text.count("variable context") for _, text in said(model.prompts[2]) if "now?" in text] == [0, 1]


@pytest.mark.parametrize(
    ("history", "mark"),
    [
        (Compaction("window", threshold_tokens=None, max_messages=4, keep_turns=1), "earlier turns left out"),
        (Compaction("summary", threshold_tokens=260, keep_turns=1), "Summary of earlier turns"),
        (Compaction("drop_outputs", threshold_tokens=150, keep_turns=1), "characters left out"),
    ],
    ids=lambda value: getattr(value, "policy", ""),
)
def test_history_bounds_the_turns_and_keeps_the_questions(history: Compaction, mark: str, tmp_path: Path) -> None:
    def reply(prompt: Prompt) -> str:
        summary = "Summarise" in prompt.messages[-1].text
        return "they were five" if summary else code("print('z' * 400)\nfinal_answer = 1")

    model, path = ScriptedModel([reply] * 20), tmp_path / "t.jsonl"
    with ToolLoopAgent(model=model, history=history, max_depth=0).session(trace=path) as s:
        outcomes = [s.ask(f"Question {n}?") for n in range(5)]
    last = "\n".join(text for _, text in said(model.prompts[-1]))
    assert (mark in last, [last.count(f"Question {n}?") for n in range(5)]) == (True, [1] * 5)
    assert last.index("Question 3?") < last.index("Question 4?")
    for outcome in outcomes:
        assert sum(row.tokens for row in outcome.ledger.rows) == outcome.usage.input_tokens
    assert all(replay(record).same for record in read_all(path))


@broken_off
def test_a_question_that_breaks_off_leaves_its_finished_turns(breaks: Any, error: Any, stop: str) -> None:
    model = ScriptedModel(["One", code("kept = 2"), breaks, code("final_answer = kept")])
    with ToolLoopAgent(model=model).session() as s:
        s.ask("First?")
        with pytest.raises(error):
            s.ask("Second?")
        assert s.ask("Third?").answer == 2
    assert [(o.stop, o.steps) for o in s.outcomes] == [("answered", 1), (stop, 1), ("answered", 1)]
    assert said(model.prompts[-1])[-2:] == [("assistant", code("kept = 2")), ("user", "(no output)\n\nThird?")]


def test_a_question_without_a_turn_is_forgotten() -> None:
    model = ScriptedModel(["One", ModelError("gone"), "Three"])
    with DirectAgent(model=model).session() as s:
        s.ask("First?")
        with pytest.raises(ModelError):
            s.ask("Second?")
        s.ask("Third?")
    assert ([text for _, text in said(model.prompts[-1])], len(s.outcomes)) == (["First?", "One", "Third?"], 3)


def test_what_cannot_be_is_one_line() -> None:
    s = ToolLoopAgent(model=ScriptedModel(["a"])).session()
    with pytest.raises(ValueError, match="empty"):
        s.ask(" ")
    assert s.outcomes == []
    s.close()
    s.close()
    with pytest.raises(RuntimeError, match="closed"):
        s.ask("More?")


def test_a_root_call_under_way_is_not_waited_for() -> None:
    model = Held()
    with DirectAgent(model=model).session() as s:
        run = start_live(s, "How many?", show=False)
        assert model.asked.wait(300)
        assert run.running
        with pytest.raises(TimeoutError):
            run.result(0.01)
        with pytest.raises(RuntimeError, match="under way"):
            s.ask("And?")
        run.stop()
        assert run.result(300).stop == "interrupted"  # the model still waits
        model.go.set()
        assert s.ask("Again?").answer == "too late"


def test_tools_of_a_run_and_of_a_session_replace_those_of_the_agent() -> None:
    def own() -> str:
        """Own."""
        return ""

    def given() -> str:
        """Given."""
        return ""

    model = ScriptedModel(["one", "two", "three"])
    agent = LeanAgent(model=model, tools=[own])
    agent.run("?")
    agent.run("?", tools=[given])
    with agent.session(tools=[given]) as s:
        s.ask("?")
    shown = ["own" if "own" in str(prompt.tools) else "given" for prompt in model.prompts]
    assert shown == ["own", "given", "given"]


def test_a_run_is_awaited_and_a_cancelled_task_stops_it() -> None:
    model, trace = Held(), Trace()

    async def main() -> None:
        assert (await DirectAgent(model=ScriptedModel(["one"])).arun("Alone?")).answer == "one"
        task = asyncio.create_task(DirectAgent(model=model).arun("How many?", trace=trace))
        await asyncio.to_thread(model.asked.wait, 300)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert trace.events[-1]["stop"] == "interrupted"
    model.go.set()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a stop may strike in a finalizer
def test_a_stop_finds_its_run_while_the_run_starts_threads() -> None:
    def work(hook: Any) -> Outcome:
        for _ in range(100_000):
            hook.on_step_start()
            begun.set()
            for _ in range(100):
                threading.Thread(target=int, daemon=True).start()
        raise AssertionError("the stop went to another thread")

    for _ in range(20):
        begun = threading.Event()
        run = LiveRun(work)
        begun.wait()
        run.stop()
        with pytest.raises(KeyboardInterrupt):
            run.result(60)


def test_a_stop_that_a_finalizer_swallowed_is_heard_at_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_loop.agents.background.interrupt_thread", lambda thread: None)
    begun, stopped = threading.Event(), threading.Event()

    def work(hook: Any) -> Outcome:
        hook.on_step_start()
        begun.set()
        stopped.wait(30)
        hook.on_step_start()
        raise AssertionError("the run went on")

    run = LiveRun(work)
    begun.wait(30)
    run.stop()
    stopped.set()
    with pytest.raises(KeyboardInterrupt):
        run.result(30)
