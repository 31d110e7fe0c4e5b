"""Random trees of agents that ask each other, with threads, failures, delays and stopped cells: what always holds.

Sub-agents are functions of the host, so that what is tested is the tree and not the REPL; a few more run in the REPL in
`test_query`.
"""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_trees import Answering, Root, outcome, tools_of

from rlm_loop.accounting import Budget, BudgetSpent, Cancelled, Scope, cell_scope
from rlm_loop.accounting.charges import NO_REPLY
from rlm_loop.agents.subcalls import Meter, SubCallError
from rlm_loop.messages import Prompt, Usage
from rlm_loop.models import ModelError
from rlm_loop.outcome import Outcome, Stop

pytestmark = pytest.mark.slow

DEPTH = 4
STUCK = 60.0  # seconds after which a tree counts as deadlocked


@dataclass(frozen=True)
class Plan:
    """What the sub-call `name` does: how its model answers, and, where it is an agent, what it asks in each turn.

    `how` a turn asks: one after the other, as a batch, or from threads; `stop_after`: the cell is stopped then.
    """

    says: str = "answer"
    delay: float = 0.0
    size: int = 1
    turns: tuple[Turn, ...] = ()
    name: str = ""

    def named(self, name: str) -> Plan:
        turns = tuple(
            Turn(t.how, tuple(p.named(f"{name}.{i}.{j}") for j, p in enumerate(t.asks)), t.stop_after)
            for i, t in enumerate(self.turns)
        )
        return Plan(self.says, self.delay, self.size, turns, name)

    def all(self) -> list[Plan]:
        return [self, *(q for t in self.turns for p in t.asks for q in p.all())]


@dataclass(frozen=True)
class Turn:
    how: str
    asks: tuple[Plan, ...]
    stop_after: float | None = None


LEAF = {
    "says": st.sampled_from(["answer"] * 6 + ["fail", "odd", "empty"]),
    "delay": st.sampled_from([0.0, 0.0, 0.0, 0.0, 0.001, 0.005]),
    "size": st.integers(1, 12),
}


def plans(stops: bool) -> st.SearchStrategy[Plan]:
    stop = st.sampled_from([None, 0.0, 0.001, 0.002]) if stops else st.none()

    def agents(children: st.SearchStrategy[Plan]) -> st.SearchStrategy[Plan]:
        asks = st.lists(children, max_size=5).map(tuple)
        turn = st.builds(Turn, st.sampled_from(["one by one", "batch", "threads"]), asks, stop)
        return st.builds(Plan, **LEAF, turns=st.lists(turn, min_size=1, max_size=2).map(tuple))

    below = st.recursive(st.builds(Plan, **LEAF), agents, max_leaves=7)
    return agents(below).map(lambda plan: plan.named("r"))


class World:
    """One tree while it runs, and what is seen of it from outside."""

    def __init__(self, plan: Plan, **settings: Any) -> None:
        self.plan, self.by_name = plan, {p.name: p for p in plan.all()}
        self.root = Root(Answering(self.model), sub_agent=self.agent, **settings)
        self.told, self.wrong = Counter[str](), list[str]()
        self.now, self.most, self.lock = 0, 0, threading.Lock()

    def model(self, text: str) -> str:
        plan = self.by_name[text]
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            time.sleep(plan.delay)
            if plan.says == "fail":
                raise ModelError("no route")
            if plan.says == "odd":
                raise RuntimeError("odd")
        finally:
            with self.lock:
                self.now -= 1
        with self.lock:
            self.told[text] += 1
        return " " if plan.says == "empty" else answer(plan)

    def agent(self, prompt: str, context: Any, inner: Meter) -> Outcome:
        """A sub-agent: a reply of its model before each turn, the turn's sub-calls, and its answer."""
        plan = self.by_name[prompt]
        query, batched = tools_of(self.root, inner, self.agent)
        try:
            for number, turn in enumerate((*plan.turns, Turn("one by one", ()))):
                inner.complete(Prompt.ask(prompt), turn=number + 1)
                self.cell(turn, query, batched)
        except BudgetSpent as spent:
            return outcome(inner, None, Stop(spent.kind), spent.reason)
        except ModelError:
            inner.node.end_children()
            raise
        return outcome(inner, answer(plan))

    def cell(self, turn: Turn, query: Any, batched: Any) -> None:
        """The turn's sub-calls, as a cell makes them: in a scope that may be ended while they are under way."""
        scope, context = Scope(), contextvars.copy_context()
        timer = threading.Timer(turn.stop_after or 0.0, scope.end, ["stopped"])
        context.run(cell_scope.set, scope)
        if turn.stop_after is not None:
            timer.start()
        try:
            context.run(self.asks, turn, query, batched)
        except Cancelled:
            if scope.reason is None:
                raise  # not this cell was stopped, but the agent
        finally:
            scope.end("the cell is over")
            timer.cancel()
            if turn.stop_after is not None:
                timer.join()

    def asks(self, turn: Turn, query: Any, batched: Any) -> None:
        raised: list[BaseException] = []

        def ask(plan: Plan) -> None:
            with contextlib.suppress(SubCallError):
                self.heard(plan, query(plan.name))

        def ask_in_a_thread(plan: Plan) -> None:
            try:
                ask(plan)
            except BaseException as error:
                raised.append(error)

        if turn.how == "batch":
            with contextlib.suppress(SubCallError):  # more than is left
                results = batched([p.name for p in turn.asks])
                if len(results) != len(turn.asks):
                    self.wrong.append("a result is missing")
                for plan, result in zip(turn.asks, results, strict=False):
                    self.heard(plan, result if result.ok else answer(plan))
        elif turn.how == "one by one":
            for plan in turn.asks:
                ask(plan)
        else:
            runs = [(contextvars.copy_context().run, (ask_in_a_thread, plan)) for plan in turn.asks]
            threads = [threading.Thread(target=run, args=given, daemon=True) for run, given in runs]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if raised:
                raise raised[0]

    def heard(self, plan: Plan, got: str) -> None:
        if got != answer(plan):
            self.wrong.append(f"{plan.name} got {got!r}")


def answer(plan: Plan) -> str:
    return (plan.name + " ") * plan.size


def play(plan: Plan, concurrency: int, max_depth: int, budget: Budget, sub_budget: Budget | None = None) -> None:
    """Run a tree to its end, and check what must hold of every tree."""
    world = World(plan, budget=budget, concurrency=concurrency, max_depth=max_depth, sub_budget=sub_budget)
    runner = threading.Thread(target=world.agent, args=(plan.name, None, world.root.metered), daemon=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "excepthook", lambda _: None)  # the root's model may fail, too
        runner.start()
        runner.join(STUCK)
    assert not runner.is_alive(), "a deadlock"
    check(world, budget, concurrency)


def check(world: World, budget: Budget, concurrency: int) -> None:
    root, events = world.root, world.root.trace.events
    assert (world.wrong, world.most <= concurrency) == ([], True)

    # spend: the model counts its tokens itself, so that the bound is zero
    spent = root.account.spent
    assert spent.calls <= (budget.calls if budget.calls is not None else spent.calls)
    assert (spent.output_tokens or 0) <= (budget.output_tokens or 10**9)
    assert (spent.total_tokens or 0) <= (budget.tokens or 10**9)
    assert not root.account.over()

    # every call is charged once, to the node that made it; whether one that was written off got its reply is not known
    starts = {e["node"]: e for e in events if e["event"] == "subcall_start"}
    names = {hashlib.sha256(p.name.encode()).hexdigest(): p.name for p in world.plan.all()}
    who = {node: names[e["prompt_sha256"]] for node, e in starts.items()} | {"0": world.plan.name}
    calls = root.ledger.calls
    answered = Counter(who[c.node] for c in calls if c.usage_warning != NO_REPLY)
    assert answered <= world.told <= Counter(who[c.node] for c in calls)
    assert (root.ledger.usage_of("0"), root.ledger.usage.calls) == (root.ledger.usage, spent.calls)
    assert len({c.call for c in calls}) == len(calls)

    # children never outlive their parent: each sub-call ends once, and before the one that asked for it
    ended = {e["node"]: i for i, e in enumerate(events) if e["event"] == "subcall_end"}
    assert sorted(ended) == sorted(e["node"] for e in events if e["event"] == "subcall_end") == sorted(starts)
    for node, start in starts.items():
        assert (start["depth"], start["parent"]) == (node.count("."), node.rpartition(".")[0])
        if start["parent"] != "0":
            assert ended[node] < ended[start["parent"]]
    for event in root.of("subcall_end"):
        below = (c.usage for c in calls if f"{c.node}.".startswith(f"{event['node']}."))
        assert event["usage"] == {"is": "Usage", **vars(sum(below, Usage.NOTHING))}
    assert not root.node._running
    for thread in [t for t in threading.enumerate() if t.name == "llm_query"]:
        thread.join(10)
        assert not thread.is_alive()


calm = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=300)
concurrencies = st.sampled_from([1, 1, 2, 3, 8])
depths = st.sampled_from([0, 1, 2, 3, 3, DEPTH, DEPTH])
limits = st.builds(
    Budget,
    calls=st.none() | st.integers(0, 12),
    output_tokens=st.none() | st.integers(1, 60),
    tokens=st.none() | st.integers(1, 400),
)


@calm
@given(st.tuples(plans(stops=False), concurrencies, depths, st.just(Budget()) | limits, st.none() | limits))
def test_trees_with_and_without_limits(tree: Any) -> None:
    play(*tree)


@calm
@given(st.tuples(plans(stops=True), concurrencies, depths, limits))
def test_trees_in_which_cells_are_stopped(tree: Any) -> None:
    play(*tree)
