"""An agent's sub-calls without an agent: the tools of a node, on scripted models, with no REPL."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rlm_loop.accounting import Account, Budget, Ledger
from rlm_loop.agents import SubCalls
from rlm_loop.agents.subcalls import Meter, Recursion, SubcallRunner, query_tools
from rlm_loop.messages import Prompt, Reply, Usage
from rlm_loop.models import Model, ScriptedModel
from rlm_loop.outcome import Outcome, Stop
from rlm_loop.traces import Trace

SubAgent = Callable[[str, Any, Meter], Outcome]


class Answering(Model):
    """A model that answers by a function of the prompt's text, or raises what that gives; counts as `ScriptedModel`."""

    def __init__(self, answer: Callable[[str], Any], name: str = "answering", price: Any = None) -> None:
        self._answer, self.name, self.price = answer, name, price
        self._counting = ScriptedModel([])

    def measure(self, prompt: Prompt) -> Any:
        return self._counting.measure(prompt)

    def complete(self, prompt: Prompt, *, max_tokens: int | None = None) -> Reply:
        one = ScriptedModel([self._answer(prompt.messages[-1].text)], price=self.price)
        return one.complete(prompt, max_tokens=max_tokens)


def upper(text: str) -> str:
    return text.upper()


class Root:
    """A root agent's side of recursion: `query` and `batched` are what its cells would call."""

    def __init__(
        self,
        model: Model | None = None,
        *,
        budget: Budget | None = None,
        sub_agent: SubAgent | None = None,
        clock: Callable[[], float] = time.monotonic,
        max_depth: int = 1,
        sub_model: Model | None = None,
        sub_budget: Budget | None = None,
        concurrency: int = 8,
    ) -> None:
        model = model or Answering(upper)
        self.settings = Recursion(SubCalls(max_depth, sub_model, (), sub_budget, concurrency), Budget())
        price = getattr(model, "price", None)
        self.account = Account(budget or Budget(), price=price, clock=clock)
        self.trace, self.ledger = Trace(), Ledger()
        self.trace.start()
        self.metered = Meter(model, self.account, self.ledger, self.trace, slots=self.settings.calls)
        self.node = self.metered.node
        self.query, self.batched = tools_of(self, self.metered, sub_agent or no_agent)

    def of(self, event: str) -> list[dict[str, Any]]:
        return [e for e in self.trace.events if e["event"] == event]

    @property
    def kinds(self) -> list[str]:
        return [e["kind"] for e in self.of("subcall_start")]


def tools_of(root: Root, agent: Meter, sub_agent: SubAgent) -> tuple[Any, Any]:
    """Functions that the cells of an agent in the tree call."""
    return query_tools(SubcallRunner(agent, root.settings, sub_agent))


def no_agent(prompt: str, context: Any, inner: Meter) -> Outcome:
    raise AssertionError("no sub-agent was to run")


def outcome(inner: Meter, answer: Any = None, stop: Stop = Stop.ANSWERED, reason: str = "") -> Outcome:
    """The outcome of a sub-agent; like a real one it ends its own sub-calls first."""
    inner.node.scope.check()
    inner.node.end_children()
    return Outcome(answer, stop, (), Usage.NOTHING, inner.ledger, reason=reason)
