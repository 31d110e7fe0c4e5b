"""Calls under way when nobody waits for them any more: given up at once, counted honestly, of no further effect."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from made_trees import Answering, Root, outcome, tools_of

from rlm_loop import Budget, ToolLoopAgent
from rlm_loop.accounting import Account, BudgetSpent, Cancelled, Scope, cell_scope
from rlm_loop.accounting.call_tree import Caller
from rlm_loop.agents import agent as agents
from rlm_loop.agents import outcome_of
from rlm_loop.agents.subcalls import Meter
from rlm_loop.messages import Prompt, Usage
from rlm_loop.models import ScriptedModel
from rlm_loop.outcome import Outcome
from rlm_loop.traces import read
from tests.agents.replies import code
from tests.repl.processes import until


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now

    def late(self, gate: threading.Event) -> Callable[[Any], str]:
        """A reply of a model 100 seconds later, when the gate is open."""

        def answer(_: Any) -> str:
            self.now += 100
            gate.wait(60)
            return "late"

        return answer


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Opened by the test, and at the latest when it is over."""
    event = threading.Event()
    yield event
    event.set()
    assert until(lambda: not asking(), 20)


def asking() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "llm_query"]


def stopped(gate: threading.Event, ask: Callable[[Root], Any], **settings: Any) -> tuple[Root, list[BaseException]]:
    """Ask in a thread of a cell's and stop the cell, while the model has not replied; what was raised there."""
    asked, scope, raised = threading.Event(), Scope(), list[BaseException]()

    def answer(text: str) -> str:
        asked.set()
        gate.wait(20)
        return text

    def work() -> None:
        cell_scope.set(scope)
        try:
            ask(root)
        except BaseException as error:
            raised.append(error)

    root, thread = Root(Answering(answer), **settings), threading.Thread(target=work)
    thread.start()
    assert asked.wait(20)
    scope.end("the cell was stopped")
    thread.join(20)
    return root, raised


def test_who_waits_is_let_go_at_once_and_a_late_reply_is_charged_but_goes_to_nobody(gate: threading.Event) -> None:
    root, raised = stopped(gate, lambda root: root.query("x"))
    assert [type(e) for e in raised] == [Cancelled]
    assert root.ledger.usage.calls == 0
    gate.set()
    root.node.end_children(20)
    assert root.ledger.usage.calls == root.account.spent.calls == 1
    (end,) = root.of("subcall_end")
    found = end["ok"], end["error"]["kind"], end["usage"]["calls"], end["answer_sha256"]
    assert found == (False, "cancelled", 1, None)


def test_what_was_not_begun_is_never_made(gate: threading.Event) -> None:
    root, raised = stopped(gate, lambda root: root.batched(["a", "b", "c"]), concurrency=1)
    gate.set()
    root.node.end_children(20)
    assert [type(e) for e in raised] == [Cancelled]
    assert root.ledger.usage.calls == 1


def test_a_call_that_does_not_come_back_is_written_off_as_unknown(gate: threading.Event) -> None:
    root, _ = stopped(gate, lambda root: root.query("x", max_tokens=30), budget=Budget(output_tokens=50))
    root.node.end_children(0.01)
    assert [(call.node, call.usage) for call in root.ledger.calls] == [("0.1", Usage(None, None))]
    assert root.ledger.usage.output_tokens is None  # not known, never zero
    assert root.account.spent.output_tokens == 30  # what it may have cost at most
    events = len(root.trace.events)
    gate.set()
    assert until(lambda: not asking(), 20)
    assert (len(root.ledger.calls), len(root.trace.events)) == (1, events)
    assert [e["error"]["kind"] for e in root.of("subcall_end")] == ["cancelled"]


def test_time_is_up_while_a_sub_call_runs(gate: threading.Event, monkeypatch: Any, tmp_path: Path) -> None:
    """It is waited for once and not beyond the limit: a run with `seconds=1` came back after 4.1 s."""
    clock, waited, kept = Clock(), list[float](), Caller._ended

    def ended(self: Caller, children: list[Caller], seconds: float) -> bool:
        waited.append(seconds if children else 0.0)
        return kept(self, children, seconds)

    monkeypatch.setattr(Caller, "_ended", ended)
    monkeypatch.setattr(agents, "Account", partial(Account, clock=clock))
    model = ScriptedModel([code("llm_query('x')"), clock.late(gate)])
    ended = ToolLoopAgent(model=model, budget=Budget(seconds=50)).run("?", trace=tmp_path / "t.jsonl")
    assert (gate.is_set(), sum(waited) <= 0.01) == (False, True)  # so nobody waited for the model
    assert (ended.stop, ended.usage.calls, ended.usage.output_tokens) == ("seconds", 2, None)
    again = outcome_of(read(tmp_path / "t.jsonl"))
    assert again.usage == ended.usage
    assert [c.node for c in again.ledger.calls] == [c.node for c in ended.ledger.calls]


def test_an_outer_time_limit_reaches_all_levels(gate: threading.Event) -> None:
    def sub_agent(prompt: str, context: Any, inner: Meter) -> Outcome:
        query, _ = tools_of(root, inner, sub_agent)
        return outcome(inner, query("deeper"))

    clock = Clock()
    model = Answering(clock.late(gate))
    root = Root(model, max_depth=3, sub_agent=sub_agent, budget=Budget(seconds=50), clock=clock)
    with pytest.raises(BudgetSpent, match="50 seconds"):
        root.query("x")
    root.node.end_children(0.01)
    assert ([e["ok"] for e in root.of("subcall_end")], len(root.of("subcall_start"))) == ([False] * 3, 3)


@pytest.mark.parametrize("depth", [1, 2], ids=["a completion is under way", "the cell of a sub-agent runs on"])
def test_a_process_that_dies_gives_its_sub_calls_up(depth: int, gate: threading.Event, tmp_path: Path) -> None:
    flag = tmp_path / "asked"
    dying = (
        "import threading, os, time\nthreading.Thread(target=llm_query, args=('x',)).start()\n"
        f"while not os.path.exists({str(flag)!r}): time.sleep(.02)\nos._exit(3)"
    )

    def reply(prompt: Prompt) -> str:
        text = prompt.messages[-1].text
        if "died" in text:
            gate.set()
            return code("final_answer = 1")
        if "dying" in text:
            return code(dying)
        if depth == 2:
            return code(f"import time\nopen({str(flag)!r}, 'w').close()\nwhile True: time.sleep(1)")
        flag.touch()
        gate.wait(60)
        return "late"

    agent = ToolLoopAgent(model=ScriptedModel([reply] * 3), max_depth=depth, repl="plain")
    ended = agent.run("dying", trace=tmp_path / "t.jsonl")
    assert ended.answer == 1
    if depth == 1:
        record = read(tmp_path / "t.jsonl")
        (end,) = record.of("subcall_end")
        assert (end["ok"], end["error"]["kind"], ended.usage.calls) == (False, "cancelled", 3)
        assert record.events.index(end) < record.events.index(record.end)


def test_nested_batches_share_one_cap_and_few_agents_are_alive_at_once() -> None:
    lock, now, most = threading.Lock(), Counter[str](), Counter[str]()

    def count(what: str, change: int) -> None:
        with lock:
            now[what] += change
            most[what] = max(most[what], now[what])

    def answer(text: str) -> str:
        count("calls", 1)
        time.sleep(0.002)
        count("calls", -1)
        return text

    def sub_agent(prompt: str, context: Any, inner: Meter) -> Outcome:
        count("agents", 1)
        got = tools_of(root, inner, sub_agent)[1](["x"] * 4)
        count("agents", -1)
        return outcome(inner, len([r for r in got if r.ok]))

    root = Root(Answering(answer), max_depth=4, sub_agent=sub_agent, concurrency=3)
    assert (root.batched(["go"] * 4), root.ledger.usage.calls) == (["4"] * 4, 4**4)
    assert most["calls"] <= 3
    assert most["agents"] <= 3 * 4  # levels of agents, and not 4 + 16 + 64
