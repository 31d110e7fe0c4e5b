"""What a run says about its sub-calls, what all of them share, and what a failed one raises."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm_loop.accounting.budget import Account, Budget, PricePerToken, UnknownPrice
from rlm_loop.accounting.scope import Scope
from rlm_loop.accounting.slots import Slots
from rlm_loop.actions import FailureKind
from rlm_loop.agents.meter import Meter
from rlm_loop.agents.rules import Beyond, SubCalls
from rlm_loop.messages import Usage
from rlm_loop.models import get_model
from rlm_loop.models.base import Model, ModelError
from rlm_loop.tools.function import ToolError


@dataclass
class Known:
    """An answer that was given, and what it cost."""

    text: str
    cost: Usage


class SubcallCache:
    """Answers by what was asked.  Who asks the same at the same time waits for the first; failures are not kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_key: dict[Hashable, Known | list[threading.Event]] = {}  # an answer, or who waits for it

    def find(self, key: Hashable, scope: Scope) -> Known | None:
        """The answer; `None` where there is none, and then the caller must call `keep` or `fail`.

        Raises `Cancelled` where the scope ends while an answer is waited for.
        """
        while True:
            with self._lock:
                entry = self._by_key.get(key)
                if entry is None:
                    self._by_key[key] = []
                    return None
                if isinstance(entry, Known):
                    return entry
                event = threading.Event()
                entry.append(event)
            with scope.waking(event.set):
                event.wait()
            scope.check()

    def known(self, key: Hashable) -> bool:
        return isinstance(self._by_key.get(key), Known)

    def keep(self, key: Hashable, text: str, cost: Usage) -> None:
        self._settle(key, Known(text, cost))

    def fail(self, key: Hashable) -> None:
        """There was no answer: the next one who asks makes the call."""
        self._settle(key, None)

    def _settle(self, key: Hashable, known: Known | None) -> None:
        with self._lock:
            entry = self._by_key.pop(key, None)
            if known is not None:
                self._by_key[key] = known
        if isinstance(entry, list):
            for event in entry:
                event.set()


class SubCallError(ToolError):
    """A sub-call gave no answer.  `reason` is one line that says why.

    It is raised where the sub-call was asked for; an error is never returned as if it were an answer.  `stop` is why a
    sub-agent ended.
    """

    stop: str | None = None

    def __init__(self, reason: str, kind: FailureKind = "runtime") -> None:
        super().__init__(kind, f"{type(self).__name__}: {reason}")
        self.reason = reason

    def __str__(self) -> str:
        return self.reason

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.reason, self.kind))


class DepthExceeded(SubCallError):
    """A sub-call would be deeper than `max_depth` allows, and `SubCalls.beyond` is `"error"`."""

    def __init__(self, reason: str, kind: FailureKind = "denied") -> None:
        super().__init__(reason, kind)


class Tree:
    """What all agents of one run share.

    At most `concurrency` model calls are under way at once, and at most so many sub-agents run besides one for each
    agent that waits for it.  With `cache`, identical sub-calls are made once.
    """

    def __init__(self, concurrency: int = 8, *, cache: bool = False) -> None:
        self.calls = Slots(concurrency)
        self.agents = Slots(concurrency)
        self.answers = SubcallCache() if cache else None
        self._models: dict[str, Model] = {}
        self._lock = threading.Lock()

    def model(self, name: str, known: tuple[Model | None, ...], listed: Mapping[str, str | Model]) -> Model:
        """The model of that name: one that the run uses already, else one that the user listed, made once.

        A name is what a cell says: it is looked up, and never read as an address.
        """
        for model in known:
            if model is not None and model.name == name:
                return model
        if name not in listed:
            there = [m.name for m in known if m is not None] + list(listed)
            reason = f"no model {str(name)[:100]!r} may be asked here; there are: {', '.join(there)}"
            raise SubCallError(reason, "invalid_arguments")
        with self._lock:
            if name not in self._models:
                try:
                    self._models[name] = get_model(listed[name])
                except (ModelError, ImportError, ValueError) as error:
                    raise SubCallError(str(error), "invalid_arguments") from error
            return self._models[name]


@dataclass(frozen=True)
class Recursion:
    """The settings of an agent's sub-calls.

    `sub_model` answers instead of the agent's own model, and those of `sub_models` where a cell names them;
    `sub_budget` limits each sub-call with all below it, besides what is left of the whole.
    """

    max_depth: int = 1
    on_depth: Beyond = "error"
    sub_model: Model | None = None
    sub_models: Mapping[str, str | Model] = field(default_factory=dict[str, "str | Model"])
    sub_budget: Budget | None = None
    tree: Tree = field(default_factory=Tree)

    @classmethod
    def of(cls, subcalls: SubCalls, budget: Budget) -> Recursion:
        """The sub-calls of one run within a budget; raises `UnknownPrice` where a cost limit could not be kept."""
        model = None if subcalls.model is None else get_model(subcalls.model)
        limits = [limit.cost for limit in (budget, subcalls.budget) if limit is not None]
        if model is not None and model.price is None and any(cost is not None for cost in limits):
            raise UnknownPrice("a cost limit needs a model of sub-calls whose price is known; limit tokens or calls")
        depth = subcalls.depth if budget.depth is None else min(subcalls.depth, int(budget.depth))
        tree = Tree(subcalls.concurrency, cache=subcalls.cache)
        return cls(depth, subcalls.beyond, model, subcalls.listed if subcalls.models else {}, subcalls.budget, tree)

    def model_for(self, name: str | None, agent: Meter) -> tuple[Model, PricePerToken | None]:
        """The model of a sub-call, and its price; raises `SubCallError` where there is none that may be used."""
        if name is not None:
            model = self.tree.model(name, (self.sub_model, agent.model), self.sub_models)
        else:
            model = self.sub_model or agent.model
        price = model.price
        if price is None and self.account_for(agent).priced:
            raise SubCallError(f"the price of {model.name} is not known, and this run has a cost limit", "denied")
        return model, price

    def account_for(self, agent: Meter) -> Account:
        """What a sub-call spends from."""
        if self.sub_budget is None:
            return agent.account
        return agent.account.scope(self.sub_budget, price=agent.price or (0.0, 0.0))
