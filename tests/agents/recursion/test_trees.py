"""Random trees of agents that ask each other, with threads, failures, delays and stopped cells: what always holds.

2,000 trees, with sub-agents that are functions of the host, so that what is tested is the tree and not the REPL; a few
more run in the REPL in `test_in_cells`.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_trees import Answering, Root, outcome

from rlm_loop.accounting import Budget, BudgetSpent, Cancelled, Scope, cell_scope
from rlm_loop.accounting.charges import NO_REPLY
from rlm_loop.agents.subcalls import Meter, SubCallError, SubcallRunner, query_tools
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


@dataclass
class World:
    """One tree while it runs, and what is seen of it from outside."""

    plan: Plan
    root: Root
    told: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])
    now: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

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

    def __post_init__(self) -> None:
        self.by_name = {p.name: p for p in self.plan.all()}

    def agent(self, prompt: str, context: Any, inner: Meter) -> Outcome:
        """A sub-agent: a reply of its model before each turn, the turn's sub-calls, and its answer."""
        plan = self.by_name[prompt]
        query, batched = query_tools(SubcallRunner(inner, self.root.settings, self.agent))
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

    def cell(self, turn: Turn, query: Callable[..., str], batched: Callable[..., list[Any]]) -> None:
        """The turn's sub-calls, as a cell makes them: in a scope that may be ended while they are under way."""
        scope = Scope()
        timer = None if turn.stop_after is None else threading.Timer(turn.stop_after, scope.end, ["stopped"])
        context = contextvars.copy_context()
        context.run(cell_scope.set, scope)
        if timer is not None:
            timer.start()
        try:
            context.run(self.asks, turn, query, batched)
        except Cancelled:
            if scope.reason is None:
                raise  # not this cell was stopped, but the agent
        finally:
            scope.end("the cell is over")
            if timer is not None:
                timer.cancel()
                timer.join()

    def asks(self, turn: Turn, query: Callable[..., str], batched: Callable[..., list[Any]]) -> None:
        if turn.how == "batch":
            try:
                results = batched([p.name for p in turn.asks])
            except SubCallError:
                return  # more than is left
            if len(results) != len(turn.asks):
                self.wrong.append("a result is missing")
            for plan, result in zip(turn.asks, results, strict=False):
                if result.ok and result != answer(plan):
                    self.wrong.append(f"{plan.name} got {result!r}")
            return
        if turn.how == "one by one":
            for plan in turn.asks:
                self.ask(plan, query)
            return
        raised: list[BaseException] = []

        def ask(plan: Plan) -> None:
            try:
                self.ask(plan, query)
            except BaseException as error:
                raised.append(error)

        threads = [
            threading.Thread(target=contextvars.copy_context().run, args=(ask, plan), daemon=True) for plan in turn.asks
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if raised:
            raise raised[0]

    def ask(self, plan: Plan, query: Callable[..., str]) -> None:
        try:
            got = query(plan.name)
        except SubCallError:
            return
        if got != answer(plan):
            self.wrong.append(f"{plan.name} got {got!r}")


def answer(plan: Plan) -> str:
    return (plan.name + " ") * plan.size


def play(plan: Plan, budget: Budget, concurrency: int, max_depth: int, sub_budget: Budget | None = None) -> World:
    """Run a tree to its end, and check what must hold of every tree."""
    world: list[World] = []
    root = Root(
        Answering(lambda text: world[0].model(text)),
        budget=budget,
        sub_agent=lambda *given: world[0].agent(*given),
        concurrency=concurrency,
        max_depth=max_depth,
        sub_budget=sub_budget,
    )
    world.append(World(plan, root))
    runner = threading.Thread(target=lambda: world[0].agent(plan.name, None, root.metered), daemon=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "excepthook", lambda _: None)  # the root's model may fail, too
        runner.start()
        runner.join(STUCK)
    assert not runner.is_alive(), "a deadlock"
    check(world[0], budget, concurrency)
    return world[0]


def check(world: World, budget: Budget, concurrency: int) -> None:
    root, events = world.root, world.root.trace.events
    assert world.wrong == []
    assert world.most <= concurrency

    # spend: the model counts its tokens itself, so that the bound is zero
    spent = root.account.spent
    assert spent.calls <= (budget.calls if budget.calls is not None else spent.calls)
    assert (spent.output_tokens or 0) <= (budget.output_tokens or 10**9)
    assert (spent.total_tokens or 0) <= (budget.tokens or 10**9)
    assert not root.account.over()

    # every call is charged once, to the node that made it; nobody knows whether one that was written off got its reply
    starts = {e["node"]: e for e in events if e["event"] == "subcall_start"}
    names = {sha(p.name): p.name for p in world.plan.all()}
    who = {node: names[e["prompt_sha256"]] for node, e in starts.items()} | {"0": world.plan.name}
    calls = root.ledger.calls
    answered = Counter(who[c.node] for c in calls if c.usage_warning != NO_REPLY)
    assert answered <= world.told <= Counter(who[c.node] for c in calls)
    assert root.ledger.usage == root.ledger.usage_of("0")
    assert spent.calls == root.ledger.usage.calls
    assert len({c.call for c in root.ledger.calls}) == len(root.ledger.calls)

    # children never outlive their parent: each sub-call ends once, and before the one that asked for it
    ended = {e["node"]: i for i, e in enumerate(events) if e["event"] == "subcall_end"}
    assert sorted(ended) == sorted(e["node"] for e in events if e["event"] == "subcall_end") == sorted(starts)
    for node, start in starts.items():
        assert start["depth"] == node.count(".")
        assert start["parent"] == node.rpartition(".")[0]
        if start["parent"] != "0":
            assert ended[node] < ended[start["parent"]]
    for event in events:
        if event["event"] == "subcall_end":
            assert event["usage"] == stored(total(root.ledger.calls, event["node"]))
    assert not root.node._running
    assert not [t for t in threading.enumerate() if t.name == "llm_query" and t.is_alive() and not soon(t)]


def soon(thread: threading.Thread) -> bool:
    thread.join(10)
    return not thread.is_alive()


def total(calls: list[Any], node: str) -> Usage:
    return sum((c.usage for c in calls if c.node == node or c.node.startswith(f"{node}.")), Usage.NOTHING)


def stored(usage: Usage) -> dict[str, Any]:
    return {"is": "Usage", **vars(usage)}


def sha(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()


CALM = settings(deadline=None, suppress_health_check=list(HealthCheck))
concurrencies = st.sampled_from([1, 1, 2, 3, 8])
depths = st.sampled_from([0, 1, 2, 3, 3, DEPTH, DEPTH])
limits = st.builds(
    Budget,
    calls=st.none() | st.integers(0, 12),
    output_tokens=st.none() | st.integers(1, 60),
    tokens=st.none() | st.integers(1, 400),
)


@settings(CALM, max_examples=150)
@given(plans(stops=False), concurrencies, depths)
def test_trees_without_limits(plan: Plan, concurrency: int, max_depth: int) -> None:
    play(plan, Budget(), concurrency, max_depth)


@settings(CALM, max_examples=200)
@given(plans(stops=False), concurrencies, depths, limits, st.none() | limits)
def test_trees_with_limits(
    plan: Plan, concurrency: int, max_depth: int, budget: Budget, sub_budget: Budget | None
) -> None:
    play(plan, budget, concurrency, max_depth, sub_budget)


@settings(CALM, max_examples=250)
@given(plans(stops=True), concurrencies, depths, limits)
def test_trees_in_which_cells_are_stopped(plan: Plan, concurrency: int, max_depth: int, budget: Budget) -> None:
    play(plan, budget, concurrency, max_depth)
