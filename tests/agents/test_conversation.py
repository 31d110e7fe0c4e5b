"""Questions that follow each other: what lives on, what each question has for itself, and what a fault leaves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rlm_loop import Budget, Compaction, DirectAgent, LeanAgent, PythonREPL, ReActAgent, ScriptedModel, ToolLoopAgent
from rlm_loop.agents import Agent, BackgroundRun, Interrupted, outcome_of
from rlm_loop.messages import Prompt, Reply, ToolCall, Usage
from rlm_loop.models import Model, ModelError
from rlm_loop.outcome import Outcome
from rlm_loop.replay import ReplayError, fork, replay
from rlm_loop.traces import Trace, read_all


def block(code: str) -> str:
    return f"```python\n{code}\n```"


def said(prompt: Prompt) -> list[tuple[str, str]]:
    return [(m.role, m.text) for m in prompt.messages]


def call(name: str, arguments: str) -> Reply:
    return Reply("", (ToolCall(None, name, arguments),), "tool_calls", Usage(10, 5))


STRATEGIES: list[tuple[str, Callable[[Any], Agent], list[Any], list[Any]]] = [
    (
        "code",
        lambda model: ToolLoopAgent(model=model),
        [block("x = sum(context)\nprint(x)"), block("final_answer = x"), block("final_answer = x + 1")],
        [6, 7],
    ),
    (
        "native calls",
        lambda model: LeanAgent(model=model),
        [
            call("python", '{"code": "x = sum(context); print(x)"}'),
            call("final_answer", '{"answer": 6}'),
            call("python", '{"code": "print(x + 1)"}'),
            call("final_answer", '{"answer": 7}'),
        ],
        [6, 7],
    ),
    (
        "react",
        lambda model: ReActAgent(model=model),
        [
            'Thought: sum\nAction: python\nAction Input: {"code": "x = sum(context); print(x)"}',
            'Thought: done\nAction: finish\nAction Input: {"answer": 6}',
            'Thought: more\nAction: python\nAction Input: {"code": "print(x + 1)"}',
            'Thought: done\nAction: finish\nAction Input: {"answer": 7}',
        ],
        [6, 7],
    ),
    ("direct", lambda model: DirectAgent(model=model), ["6", "7"], ["6", "7"]),
]


@pytest.mark.parametrize(("agent", "replies", "answers"), [s[1:] for s in STRATEGIES], ids=[s[0] for s in STRATEGIES])
def test_every_strategy_goes_on(
    agent: Callable[[Any], Agent], replies: list[Any], answers: list[Any], tmp_path: Path
) -> None:
    model, path = ScriptedModel(replies), tmp_path / "t.jsonl"
    with agent(model).session(context=[1, 2, 3], trace=path) as s:
        outcomes = [s.ask("What is the sum?"), s.ask("And one more?")]
    assert [o.answer for o in outcomes] == answers
    assert s.outcomes == outcomes
    for before, now in pairwise(model.prompts):  # the prefix grows through the session
        assert now.messages[: len(before.messages)] == before.messages
        roles = [m.role for m in now.messages]
        assert all((a, b) != ("user", "user") for a, b in pairwise(roles))
    assert [t.index for o in outcomes for t in o.turns] == list(range(1, len(replies) + 1))
    for outcome in outcomes:
        assert sum(row.tokens for row in outcome.ledger.rows) == outcome.usage.input_tokens
        assert outcome.usage.calls == outcome.steps
    assert s.usage == outcomes[0].usage + outcomes[1].usage
    records = list(read_all(path))
    assert [r.start["session"]["question"] for r in records] == [1, 2]
    assert records[1].start["session"]["after"] == records[0].id == outcomes[0].run
    for record, outcome in zip(records, outcomes, strict=True):
        again = replay(record)
        assert again.same, str(again)
        assert outcome_of(record).ledger.rows == outcome.ledger.rows
    with pytest.raises(ReplayError, match="question 2 of a session"):
        fork(records[1], at=0)


def test_the_next_question_is_put_after_what_was_said() -> None:
    model = ScriptedModel([block("x = 5\nfinal_answer = x"), "It is 6", "You are welcome"])
    with ToolLoopAgent(model=model, max_depth=0).session(context="abc") as s:
        s.ask("Five?")
        s.ask("One more?")
        s.ask("Thanks")
    rest = said(model.prompts[2])[1:]
    assert rest == [
        ("user", rest[0][1]),
        ("assistant", block("x = 5\nfinal_answer = x")),
        ("user", "(no output)\n\nOne more?"),
        ("assistant", "It is 6"),
        ("user", "Thanks"),
    ]
    assert rest[0][1].startswith("Five?\nThe REPL already has the variable context")
    again = s.outcomes[1].ledger.frame()
    assert set(again[again["resent"] > 0]["cause"]) == {"system", "task", "template"}  # the answer was not sent before


def test_each_question_has_the_budget_anew() -> None:
    model = ScriptedModel([block("a = 1"), block("b = 2"), block("c = 3"), block("final_answer = a + b + c")])
    with ToolLoopAgent(model=model, budget=Budget(steps=2)).session() as s:
        first, second = s.ask("Make them"), s.ask("Go on")
    assert (first.stop, first.steps) == ("steps", 2)
    assert (second.stop, second.answer) == ("answered", 6)


def test_a_context_is_told_once_and_a_new_one_again() -> None:
    model = ScriptedModel([block("final_answer = context")] * 3)
    with ToolLoopAgent(model=model).session(context="old") as s:
        answers = [s.ask("Which?").answer, s.ask("And now?").answer, s.ask("And now?", context="new").answer]
    assert answers == ["old", "old", "new"]
    assert [text.count("variable context") for _, text in said(model.prompts[2]) if "now?" in text] == [0, 1]


@pytest.mark.parametrize(
    ("history", "marks"),
    [
        (Compaction("window", threshold_tokens=None, max_messages=4, keep_turns=1), ["earlier turns left out"]),
        (Compaction("summary", threshold_tokens=260, keep_turns=1), ["Summary of earlier turns"]),
        (Compaction("drop_outputs", threshold_tokens=150, keep_turns=1), ["characters left out"]),
    ],
    ids=lambda value: getattr(value, "policy", ""),
)
def test_history_bounds_the_turns_and_keeps_the_questions(
    history: Compaction, marks: list[str], tmp_path: Path
) -> None:
    def reply(prompt: Prompt) -> str:
        return (
            "they were five" if "Summarise" in prompt.messages[-1].text else block("print('z' * 400)\nfinal_answer = 1")
        )

    model, path = ScriptedModel([reply] * 20), tmp_path / "t.jsonl"
    with ToolLoopAgent(model=model, history=history, max_depth=0).session(trace=path) as s:
        outcomes = [s.ask(f"Question {n}?") for n in range(5)]
    last = "\n".join(text for _, text in said(model.prompts[-1]))
    assert all(mark in last for mark in marks)
    assert [last.count(f"Question {n}?") for n in range(5)] == [1] * 5
    assert last.index("Question 3?") < last.index("Question 4?")
    for outcome in outcomes:
        assert sum(row.tokens for row in outcome.ledger.rows) == outcome.usage.input_tokens
    for record in read_all(path):
        assert replay(record).same


def fails(_: Prompt) -> Any:
    raise ModelError("the server is gone")


def stops(_: Prompt) -> Any:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("breaks", "error"), [(fails, ModelError), (stops, Interrupted)])
def test_a_question_that_breaks_off_leaves_its_finished_turns(
    breaks: Callable[[Prompt], Any], error: type[BaseException]
) -> None:
    model = ScriptedModel(["One", block("kept = 2"), breaks, block("final_answer = kept")])
    with ToolLoopAgent(model=model).session() as s:
        s.ask("First?")
        with pytest.raises(error):
            s.ask("Second?")
        third = s.ask("Third?")
    assert third.answer == 2
    assert [o.steps for o in s.outcomes] == [1, 1, 1]
    assert [o.stop for o in s.outcomes] == ["answered", "failed" if error is ModelError else "interrupted", "answered"]
    assert said(model.prompts[-1])[-2:] == [("assistant", block("kept = 2")), ("user", "(no output)\n\nThird?")]


def test_a_question_without_a_turn_is_forgotten() -> None:
    model = ScriptedModel(["One", fails, "Three"])
    with DirectAgent(model=model).session() as s:
        s.ask("First?")
        with pytest.raises(ModelError):
            s.ask("Second?")
        s.ask("Third?")
    assert [text for _, text in said(model.prompts[-1])] == ["First?", "One", "Third?"]
    assert len(s.outcomes) == 3


def test_what_the_caller_handed_in_stays_open() -> None:
    trace = Trace()
    with PythonREPL() as repl:
        for name in ("one", "two"):
            with ToolLoopAgent(model=ScriptedModel([block(f"{name} = 1")] * 2), repl=repl, max_steps=1).session(
                trace=trace
            ) as s:
                s.ask("Make it")
        assert repl.get("one + two") == 2
    assert len({e["run"] for e in trace.events}) == 2


def test_what_cannot_be_is_one_line() -> None:
    agent = ToolLoopAgent(model=ScriptedModel(["a"]))
    s = agent.session()
    with pytest.raises(ValueError, match="empty"):
        s.ask(" ")
    assert s.outcomes == []
    s.close()
    s.close()
    with pytest.raises(RuntimeError, match="closed"):
        s.ask("More?")
    with pytest.raises(TypeError, match="contxt"):
        agent.session(contxt=1)  # pyright: ignore[reportCallIssue]


class Gate(Model):
    """A model that says that it was asked, and waits."""

    name = "gate"

    def __init__(self, replies: Sequence[str] = ()) -> None:
        self.asked, self.open, self.replies = threading.Event(), threading.Event(), list(replies)

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        self.asked.set()
        self.open.wait(300)
        return Reply(self.replies.pop(0) if self.replies else "too late", usage=Usage(1, 1))


def test_a_run_in_the_background() -> None:
    model = Gate(["six"])
    run = DirectAgent(model=model).start("How many?", context=[1])
    assert model.asked.wait(300)
    assert run.running
    with pytest.raises(TimeoutError):
        run.result(0.01)
    model.open.set()
    assert run.result().answer == "six"
    assert not run.running


def test_a_root_call_under_way_is_not_waited_for() -> None:
    model = Gate()
    with DirectAgent(model=model).session() as s:
        run = BackgroundRun(lambda hooks: s.ask("How many?", hooks=hooks)).begin()
        assert model.asked.wait(300)
        with pytest.raises(RuntimeError, match="under way"):
            s.ask("And?")
        run.stop()
        assert run.result(300).stop == "interrupted"  # the model still waits
        model.open.set()
        assert s.ask("Again?").answer == "too late"


def test_awaited() -> None:
    assert asyncio.run(DirectAgent(model=ScriptedModel(["one"])).arun("Alone?")).answer == "one"


def test_a_cancelled_task_stops_its_run() -> None:
    model = Gate()

    trace = Trace()

    async def main() -> None:
        task = asyncio.create_task(DirectAgent(model=model).arun("How many?", trace=trace))
        await asyncio.to_thread(model.asked.wait, 300)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert trace.events[-1]["stop"] == "interrupted"
    model.open.set()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a stop may strike in a finalizer
def test_a_stop_finds_its_run_while_the_run_starts_threads() -> None:
    def work(hooks: tuple[object, ...]) -> Outcome:
        for _ in range(100_000):
            hooks[0].on_step_start()  # type: ignore[attr-defined]
            begun.set()
            for _ in range(100):
                threading.Thread(target=int, daemon=True).start()
        raise AssertionError("the stop went to another thread")

    for _ in range(20):
        begun = threading.Event()
        run = BackgroundRun(work)
        run.begin()
        begun.wait()
        run.stop()
        with pytest.raises(KeyboardInterrupt):
            run.result(60)


def test_a_stop_that_a_finalizer_swallowed_is_heard_at_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_loop.agents.background.interrupt_thread", lambda thread: None)
    begun, stopped = threading.Event(), threading.Event()

    def work(hooks: tuple[object, ...]) -> Outcome:
        hooks[0].on_step_start()  # type: ignore[attr-defined]
        begun.set()
        stopped.wait(30)
        hooks[0].on_step_start()  # type: ignore[attr-defined]
        raise AssertionError("the run went on")

    run = BackgroundRun(work).begin()
    begun.wait(30)
    run.stop()
    stopped.set()
    with pytest.raises(KeyboardInterrupt):
        run.result(30)
